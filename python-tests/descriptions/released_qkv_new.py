"""QKV_new, H_QKV with a third buffer and a transposition on chip, for the released TAIDL tools."""

from taidl import Accelerator

qkv = Accelerator("QKV new")
for name, rows in (("d1", 128), ("d3", 128), ("d2", 64)):
    qkv.add_data_model(name, [rows], [64], "bf16")


def move(name, source, target, semantics, attributes=("n",)):
    length = {True: "@c.n", False: "64"}["n" in attributes]
    slices = [
        [buffer, [f"@a.{address}"], [f"{length} * 128" if buffer == "d0" else length]]
        for buffer, address in ((source, "addr_in"), (target, "addr_out"))
    ]
    instr = qkv.add_instruction(name, list(attributes), ["addr_in", "addr_out"])
    instr.set_inputs(slices[:1])
    instr.set_outputs(slices[1:])
    instr.add_semantics(f"ENTRY {name} {{ {semantics} }}")


LOAD = """%In1 = u8[`@c.n * 128`] parameter(0); %a = u8[`@c.n`,64,2] reshape(%In1);
          ROOT %Out0 = bf16[`@c.n`,64] bitcast_convert(%a);"""
STORE = """%In1 = bf16[`@c.n`,64] parameter(0); %a = u8[`@c.n`,64,2] bitcast_convert(%In1);
           ROOT %Out0 = u8[`@c.n*128`] reshape(%a);"""
COPY = "%In1 = bf16[`@c.n`,64] parameter(0); ROOT %Out0 = bf16[`@c.n`,64] copy(%In1);"
TURN = """%In1 = bf16[64,64] parameter(0); %a = bf16[64,64] transpose(%In1), dimensions={1,0};
          ROOT %Out0 = bf16[64, 64] copy(%a);"""

for digit in "13":
    move(f"load_0{digit}", "d0", f"d{digit}", LOAD)
    move(f"store_{digit}0", f"d{digit}", "d0", STORE)
    move(f"mov_2{digit}", "d2", f"d{digit}", COPY)
move("transpose_13", "d1", "d3", TURN, attributes=())

for digit in "13":
    instr = qkv.add_instruction(f"gemm_{digit}3", [], ["addr_1", "addr_2", "addr_out"])
    instr.set_inputs([[f"d{digit}", ["@a.addr_1"], ["64"]], ["d3", ["@a.addr_2"], ["64"]]])
    instr.set_outputs([["d2", ["@a.addr_out"], ["64"]]])
    instr.add_semantics(f"""ENTRY gemm_{digit}3 {{
        %In1 = bf16[64,64] parameter(0); %In2 = bf16[64,64] parameter(1);
        ROOT %Out0 = bf16[64,64] dot(%In1, %In2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}};
    }}""")

instr = qkv.add_instruction("softmax", ["n"], ["addr"])
instr.set_inputs([["d2", ["@a.addr"], ["@c.n"]]])
instr.set_outputs([["d2", ["@a.addr"], ["@c.n"]]])
instr.add_semantics("""ENTRY softmax {
    %In1 = bf16[`@c.n`,64] parameter(0); %e = bf16[`@c.n`,64] exponential(%In1);
    %sum = bf16[`@c.n`] reduce_add(%e), dimensions={1};
    %all = bf16[`@c.n`,64] broadcast(%sum), dimensions={0};
    ROOT %Out0 = bf16[`@c.n`,64] divide(%e, %all);
}""")
print("10 instructions and what a description may print")
