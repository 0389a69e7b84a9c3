"""H_QKV in the spelling of the ACT paper's Fig. 6: attributes without prefixes, main memory with its size."""

from act_pjrt.taidl import Accelerator, Slice

qkv = Accelerator("h_qkv")
qkv.set_hbm("d0", size="1MB")
qkv.add_data_model("d1", S0=[128], S1=[64], E="bf16")
qkv.add_data_model("d2", S0=[64], S1=[64], E="bf16")


def transfer(name, source, target, semantics, limit):
    instr = qkv.add_instr(name=name, alpha=["n"], beta=["addr_in", "addr_out"])
    size = {"d0": "n * 128"}
    instr.set_inputs([Slice(source, start=["addr_in"], len=[size.get(source, "n")])])
    instr.set_output((target, {"start": ["addr_out"], "len": [size.get(target, "n")]}))
    instr.set_constraints([limit])
    instr.set_abstract_computation(f"ENTRY {name} {{ {semantics} }}")


READ = "x1 = u8[`n * 128`] parameter(0); a = u8[`n`, 64, 2] reshape(x1);"
transfer("load_rm", "d0", "d1", f"{READ} ROOT y = bf16[`n`, 64] bitcast_convert(a);", "n <= 128")
transfer(
    "load_cm",
    "d0",
    "d1",
    f"{READ} b = bf16[`n`, 64] bitcast_convert(a); ROOT y = bf16[64, `n`] transpose(b), dimensions={{1, 0}};",
    "n == 64",
)
transfer(
    "store_rm",
    "d1",
    "d0",
    """x = bf16[`n`, 64] parameter(0); a = u8[`n`, 64, 2] bitcast_convert(x);
       ROOT y = u8[`n * 128`] reshape(a);""",
    "n <= 128",
)
transfer(
    "store_cm",
    "d1",
    "d0",
    """x = bf16[`n`, 64] parameter(0); t = bf16[64, `n`] transpose(x), dimensions={1, 0};
       a = u8[64, `n`, 2] bitcast_convert(t); ROOT y = u8[`n * 128`] reshape(a);""",
    "n <= 128",
)
transfer("mov", "d2", "d1", "x = bf16[`n`, 64] parameter(0); ROOT y = bf16[`n`, 64] copy(x);", "n <= 64")

instr = qkv.add_instr(name="gemm", beta=["addr_1", "addr_2", "addr_out"])
instr.set_inputs([("d1", ["addr_1"], [64]), ("d1", ["addr_2"], [64])])
instr.set_output(("d2", ["addr_out"], [64]))
instr.set_abstract_computation("""ENTRY gemm {
    x1 = bf16[64, 64] parameter(0); x2 = bf16[64, 64] parameter(1);
    ROOT y = bf16[64, 64] dot(x1, x2), lhs_contracting_dims={1}, rhs_contracting_dims={0};
}""")

instr = qkv.add_instr(name="softmax", alpha=["n"], beta=["addr"])
instr.set_inputs([("d2", ["addr"], ["n"])])
instr.set_output(("d2", ["addr"], ["n"]))
instr.set_constraints(["n <= 64"])
instr.set_abstract_computation("""ENTRY softmax {
    x = bf16[`n`, 64] parameter(0); e = bf16[`n`, 64] exponential(x); zero = bf16[1] constant(0);
    s = bf16[`n`] reduce(e, zero), dimensions={1}, to_apply=add;
    d = bf16[`n`, 64] broadcast(s), dimensions={0}; ROOT y = bf16[`n`, 64] divide(e, d);
}""")
