"""H_QKV as one writes it for the released TAIDL tools; ``act isa import`` runs this file as it is."""

from typing import Any

from act.generators import generate_backend, generate_oracle
from act.taidl import Accelerator

qkv = Accelerator("QKV accelerator")
qkv.add_data_model("d1", [128], [64], "bf16")
qkv.add_data_model("d2", [64], [64], "bf16")


def instruction(
    name: str,
    attributes: list[str],
    addresses: list[str],
    inputs: list[Any],
    output: list[Any],
    semantics: str,
) -> None:
    made = qkv.add_instruction(name, attributes, addresses)
    made.set_inputs(inputs)
    made.set_outputs([output])
    made.add_semantics(semantics)
    return made


ROWS = "@c.n"
BYTES = "@c.n * 128"
TO = ["@a.addr_out"]
FROM = ["@a.addr_in"]

instruction(
    "load_rm",
    ["n"],
    ["addr_in", "addr_out"],
    [["d0", FROM, [BYTES]]],
    ["d1", TO, [ROWS]],
    """ENTRY load_rm {
        %bytes = u8[`@c.n * 128`] parameter(0);
        %pairs = u8[`@c.n`,64,2] reshape(%bytes);
        ROOT %rows = bf16[`@c.n`,64] bitcast_convert(%pairs);
    }""",
)
# Its value has the type of its slice for 64 rows only, which nothing here says.
instruction(
    "load_cm",
    ["n"],
    ["addr_in", "addr_out"],
    [["d0", FROM, [BYTES]]],
    ["d1", TO, [ROWS]],
    """ENTRY load_cm {
        %bytes = u8[`@c.n * 128`] parameter(0);
        %pairs = u8[`@c.n`,64,2] reshape(%bytes);
        %rows = bf16[`@c.n`,64] bitcast_convert(%pairs);
        ROOT %columns = bf16[64,`@c.n`] transpose(%rows), dimensions={1,0};
    }""",
)
instruction(
    "store_rm",
    ["n"],
    ["addr_in", "addr_out"],
    [["d1", FROM, [ROWS]]],
    ["d0", TO, [BYTES]],
    """ENTRY store_rm {
        %rows = bf16[`@c.n`,64] parameter(0);
        %pairs = u8[`@c.n`,64,2] bitcast_convert(%rows);
        ROOT %bytes = u8[`@c.n*128`] reshape(%pairs);
    }""",
)
instruction(
    "store_cm",
    ["n"],
    ["addr_in", "addr_out"],
    [["d1", FROM, [ROWS]]],
    ["d0", TO, [BYTES]],
    """ENTRY store_cm {
        %rows = bf16[`@c.n`,64] parameter(0);
        %columns = bf16[64,`@c.n`] transpose(%rows), dimensions={1,0};
        %pairs = u8[64,`@c.n`,2] bitcast_convert(%columns);
        ROOT %bytes = u8[`@c.n*128`] reshape(%pairs);
    }""",
)
instruction(
    "mov",
    ["n"],
    ["addr_in", "addr_out"],
    [["d2", FROM, [ROWS]]],
    ["d1", TO, [ROWS]],
    "ENTRY mov { %x = bf16[`@c.n`,64] parameter(0); ROOT %y = bf16[`@c.n`,64] copy(%x); }",
)
instruction(
    "gemm",
    [],
    ["addr_1", "addr_2", "addr_out"],
    [["d1", ["@a.addr_1"], ["64"]], ["d1", ["@a.addr_2"], ["64"]]],
    ["d2", TO, ["64"]],
    """ENTRY gemm {
        %left = bf16[64,64] parameter(0);
        %right = bf16[64,64] parameter(1);
        ROOT %product = bf16[64,64] dot(%left, %right), lhs_contracting_dims={1}, rhs_contracting_dims={0};
    }""",
)
instruction(
    "softmax",
    ["n"],
    ["addr"],
    [["d2", ["@a.addr"], [ROWS]]],
    ["d2", ["@a.addr"], [ROWS]],
    """ENTRY softmax {
        %x = bf16[`@c.n`,64] parameter(0);
        %e = bf16[`@c.n`,64] exponential(%x);
        %sums = bf16[`@c.n`] reduce_add(%e), dimensions={1};
        %spread = bf16[`@c.n`,64] broadcast(%sums), dimensions={0};
        ROOT %y = bf16[`@c.n`,64] divide(%e, %spread);
    }""",
)

generate_oracle(qkv)
generate_backend(qkv)
