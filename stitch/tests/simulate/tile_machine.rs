//! A small int8 machine in the manner of Gemmini, built by hand: scratchpad rows of 16 bytes, accumulator rows of
//! 16 s32, strided loads of up to four blocks, matmul with and without accumulation, stores as s32 or saturated s8.

use act_hlo::{Binary, DotDims, ElemType, OpKind};
use act_isa::expr::Expr;
use act_isa::*;

pub(crate) const DIM: i64 = 16;

fn int(v: i64) -> Expr {
    Expr::Int(v)
}

fn alpha(k: u16) -> Expr {
    Expr::Alpha(k)
}

fn beta(k: u16) -> Expr {
    Expr::Beta(k)
}

fn mul(a: Expr, b: Expr) -> Expr {
    Expr::Mul(Box::new(a), Box::new(b))
}

fn attr(name: &str, min: i64, max: i64) -> AttrDecl {
    AttrDecl { name: name.into(), kind: AttrKind::Int { min, max } }
}

fn stmt(op: SymOp, operands: &[usize], elem: ElemType, dims: &[Expr]) -> Stmt {
    Stmt { name: String::new(), op, operands: operands.to_vec(), elem, dims: dims.to_vec() }
}

fn rows(buffer: u16, start: Expr, len: Expr) -> Slice {
    Slice::OnChip(BufferSlice { buffer: BufferId(buffer), start: vec![start], len: vec![len] })
}

fn window(start: Expr, dims: &[(Expr, Expr)]) -> Slice {
    Slice::Hbm(HbmWindow { start, dims: dims.to_vec() })
}

struct Parts<'a> {
    name: &'a str,
    alpha: Vec<AttrDecl>,
    beta: &'a [&'a str],
    inputs: Vec<Slice>,
    output: Slice,
    stmts: Vec<Stmt>,
    asm: &'a str,
}

fn instr(parts: Parts<'_>) -> Instr {
    let root = parts.stmts.len() - 1;
    Instr {
        name: parts.name.into(),
        alpha: parts.alpha,
        beta: parts.beta.iter().map(|name| attr(name, 0, i64::MAX)).collect(),
        inputs: parts.inputs,
        outputs: vec![parts.output],
        cost: int(3),
        asm: parts.asm.into(),
        computation: Computation { stmts: parts.stmts, roots: vec![root] },
        ..Instr::default()
    }
}

/// Buffers `spad: s8[1024 | 16]` and `acc: s32[256 | 16]`.
pub(crate) fn isa() -> Isa {
    use ElemType::{S8, S32, U8};
    let p = SymOp::Parameter;
    let d = || int(DIM);
    let buffer = |name: &str, rows: u64, elem| Buffer {
        name: name.into(),
        access: vec![rows],
        unit: vec![DIM as u64],
        elem,
        align: vec![1],
        ..Buffer::default()
    };
    // rows x (blocks·16) bytes of a matrix with row pitch `stride`, each block of 16 columns below the last.
    let load = instr(Parts {
        name: "load",
        alpha: vec![attr("rows", 1, 16), attr("blocks", 1, 4), attr("stride", 0, 1 << 40)],
        beta: &["addr", "row"],
        inputs: vec![window(beta(0), &[(alpha(0), alpha(2)), (mul(alpha(1), d()), int(1))])],
        output: rows(0, beta(1), mul(alpha(0), alpha(1))),
        stmts: vec![
            stmt(p(0), &[], U8, &[alpha(0), mul(alpha(1), d())]),
            stmt(OpKind::BitcastConvert, &[0], S8, &[alpha(0), mul(alpha(1), d())]),
            stmt(OpKind::Reshape, &[1], S8, &[alpha(0), alpha(1), d()]),
            stmt(OpKind::Transpose { perm: vec![1, 0, 2] }, &[2], S8, &[alpha(1), alpha(0), d()]),
            stmt(OpKind::Reshape, &[3], S8, &[mul(alpha(0), alpha(1)), d()]),
        ],
        asm: "load rows={rows}, blocks={blocks}, stride={stride}, [{addr}], {row}",
    });
    let product = |accumulate: bool| {
        let mut inputs = vec![rows(0, beta(0), d()), rows(0, beta(1), d())];
        let mut stmts = vec![
            stmt(p(0), &[], S8, &[d(), d()]),
            stmt(p(1), &[], S8, &[d(), d()]),
            stmt(OpKind::Convert, &[0], S32, &[d(), d()]),
            stmt(OpKind::Convert, &[1], S32, &[d(), d()]),
            stmt(OpKind::Dot(DotDims::matmul()), &[2, 3], S32, &[d(), d()]),
        ];
        if accumulate {
            inputs.push(rows(1, beta(2), d()));
            stmts.push(stmt(p(2), &[], S32, &[d(), d()]));
            stmts.push(stmt(OpKind::Binary(Binary::Add), &[5, 4], S32, &[d(), d()]));
        }
        instr(Parts {
            name: if accumulate { "matmul_acc" } else { "matmul" },
            alpha: vec![],
            beta: &["a", "b", "c"],
            inputs,
            output: rows(1, beta(2), d()),
            stmts,
            asm: "",
        })
    };
    let store = instr(Parts {
        name: "store",
        alpha: vec![attr("rows", 1, 16), attr("cols", 1, 16), attr("stride", 0, 1 << 40)],
        beta: &["row", "addr"],
        inputs: vec![rows(1, beta(0), alpha(0))],
        output: window(beta(1), &[(alpha(0), alpha(2)), (mul(alpha(1), int(4)), int(1))]),
        stmts: vec![
            stmt(p(0), &[], S32, &[alpha(0), d()]),
            stmt(
                OpKind::Slice {
                    start: vec![int(0), int(0)],
                    limit: vec![alpha(0), alpha(1)],
                    stride: vec![int(1), int(1)],
                },
                &[0],
                S32,
                &[alpha(0), alpha(1)],
            ),
            stmt(OpKind::BitcastConvert, &[1], U8, &[alpha(0), alpha(1), int(4)]),
            stmt(OpKind::Reshape, &[2], U8, &[alpha(0), mul(alpha(1), int(4))]),
        ],
        asm: "",
    });
    let constant = |value| stmt(OpKind::Constant(SymConst::Int(int(value))), &[], S32, &[]);
    let store_saturated = instr(Parts {
        name: "store_saturated",
        alpha: vec![attr("stride", 0, 1 << 40)],
        beta: &["row", "addr"],
        inputs: vec![rows(1, beta(0), d())],
        output: window(beta(1), &[(d(), alpha(0)), (d(), int(1))]),
        stmts: vec![
            stmt(p(0), &[], S32, &[d(), d()]),
            constant(-128),
            constant(127),
            stmt(OpKind::Clamp, &[1, 0, 2], S32, &[d(), d()]),
            stmt(OpKind::Convert, &[3], S8, &[d(), d()]),
            stmt(OpKind::BitcastConvert, &[4], U8, &[d(), d()]),
        ],
        asm: "",
    });
    Isa {
        name: "tile machine".into(),
        hbm: Hbm { name: "d0".into(), size: 1 << 40, align: 1, ordered: false },
        buffers: vec![buffer("spad", 1024, S8), buffer("acc", 256, S32)],
        instrs: vec![load, product(false), product(true), store, store_saturated],
        ..Isa::default()
    }
}
