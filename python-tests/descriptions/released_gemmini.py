"""A Gemmini-like accelerator as one writes it for the released TAIDL tools.

Both dimensions are addressed, and scalars are of type ``TYPE[1]``.
"""

from act_backend import generate_backend
from taidl import Accelerator

DIM = 16
TILE = ["@c.rows", "@c.cols"]

acc = Accelerator(f"Gemmini(DIM={DIM})", base_dir="nowhere")
acc.add_data_model("spad", [1024 * DIM, DIM], [], "s8")
acc.add_data_model("acc", [64 * DIM, DIM], [], "s32")

instr = acc.add_instruction("mvin", ["rows", "cols"], ["hbm_addr", "sp_addr"])
instr.set_inputs([["d0", ["@a.hbm_addr"], ["@c.rows * @c.cols"]]])
instr.set_outputs([["spad", ["@a.sp_addr", 0], TILE]])
instr.add_semantics("""
ENTRY mvin{
    %In1 = u8[`@c.rows*@c.cols`] parameter(0);
    %data = u8[`@c.rows`,`@c.cols`] reshape(%In1);
    ROOT %Out0 = s8[`@c.rows`,`@c.cols`] bitcast_convert(%data);
}
""")

instr = acc.add_instruction("mvin_scaled", ["rows", "cols", "scale"], ["hbm_addr", "sp_addr"])
instr.set_inputs([["d0", ["@a.hbm_addr"], ["@c.rows * @c.cols"]]])
instr.set_outputs([["spad", ["@a.sp_addr", 0], TILE]])
instr.add_semantics("""
ENTRY mvin_scaled{
    %In1 = u8[`@c.rows*@c.cols`] parameter(0);
    %data = u8[`@c.rows`,`@c.cols`] reshape(%In1);
    %val = s8[`@c.rows`,`@c.cols`] bitcast_convert(%data);
    %scale = s8[1] constant(`@c.scale`);
    %scales = s8[`@c.rows`,`@c.cols`] broadcast(%scale), dimensions={};
    ROOT %Out0 = s8[`@c.rows`,`@c.cols`] multiply(%val, %scales);
}
""")

for name, relu in (("mvout_acc", False), ("mvout_acc_relu", True)):
    instr = acc.add_instruction(name, ["rows", "cols"], ["hbm_addr", "acc_addr"])
    instr.set_inputs([["acc", ["@a.acc_addr", 0], TILE]])
    instr.set_outputs([["d0", ["@a.hbm_addr"], ["@c.rows * @c.cols * 4"]]])
    instr.add_semantics(f"""
ENTRY {name}{{
    %In1 = s32[`@c.rows`, `@c.cols`] parameter(0);
    %zero = s32[1] constant(0);
    %zeros = s32[`@c.rows`,`@c.cols`] broadcast(%zero), dimensions={{}};
    %relu = s32[`@c.rows`,`@c.cols`] {"maximum(%In1, %zeros)" if relu else "copy(%In1)"};
    %data = u8[`@c.rows`,`@c.cols`,4] bitcast_convert(%relu);
    ROOT %Out0 = u8[`@c.rows*@c.cols*4`] reshape(%data);
}}
""")

PRODUCT = """
    %In1 = s8[`@c.I`, `@c.K`] parameter(0);
    %In2 = s8[`@c.K`, `@c.J`] parameter(1);
    %a = s32[`@c.I`, `@c.K`] convert(%In1);
    %b = s32[`@c.K`, `@c.J`] convert(%In2);
"""
DIMENSIONS = "lhs_batch_dims={}, lhs_contracting_dims={1}, rhs_batch_dims={}, rhs_contracting_dims={0}"

instr = acc.add_instruction("matmul", ["I", "J", "K"], ["c", "a", "b"], cost="16")
instr.set_inputs([["spad", ["@a.a", 0], ["@c.I", "@c.K"]], ["spad", ["@a.b", 0], ["@c.K", "@c.J"]]])
instr.set_outputs([["acc", ["@a.c", 0], ["@c.I", "@c.J"]]])
instr.add_semantics(f"""
ENTRY matmul{{ {PRODUCT}
    ROOT %Out0 = s32[`@c.I`,`@c.J`] dot(%a, %b), {DIMENSIONS};
}}
""")

# The released tools keep constraints without reading them.
instr = acc.add_instruction(
    "mac", ["I", "J", "K"], ["c", "a", "b"], constraints=["@c.I <= 16 and @c.J <= 16"]
)
instr.add_constraints("""
@c.K // 16 <= 1
@a.c % 1 == 0
""")
instr.set_inputs(
    [
        ["spad", ["@a.a", 0], ["@c.I", "@c.K"]],
        ["spad", ["@a.b", 0], ["@c.K", "@c.J"]],
        ["acc", ["@a.c", 0], ["@c.I", "@c.J"]],
    ]
)
instr.set_outputs([["acc", ["@a.c", 0], ["@c.I", "@c.J"]]])
instr.add_semantics(f"""
ENTRY mac{{ {PRODUCT}
    %old = s32[`@c.I`, `@c.J`] parameter(2);
    %dot = s32[`@c.I`, `@c.J`] dot(%a, %b), {DIMENSIONS};
    ROOT %Out0 = s32[`@c.I`, `@c.J`] add(%dot, %old);
}}
""")

acc.generate_oracle()
generate_backend(acc)
