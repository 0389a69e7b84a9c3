//! Every elementwise operator and type, each as an instruction of one description, on random and special values,
//! against the oracle.

use crate::differential::Random;
use act_hlo::{Binary, Direction, ElemType, Literal, OpKind, Shape, Unary};
use act_isa::oracle::{Machine, Oracle};
use act_isa::*;
use act_stitch::simulate::{Executable, LowerError};
use act_stitch::stitched::emit;

const LANES: u64 = 64;
/// Operand buffers of every type; the result buffer follows them.
const OPERANDS: usize = 3;

const TYPES: [ElemType; 15] = [
    ElemType::Pred,
    ElemType::S4,
    ElemType::U4,
    ElemType::S8,
    ElemType::S16,
    ElemType::S32,
    ElemType::S64,
    ElemType::U8,
    ElemType::U16,
    ElemType::U32,
    ElemType::U64,
    ElemType::F16,
    ElemType::BF16,
    ElemType::F32,
    ElemType::F64,
];

/// `to[LANES] = op(from[LANES], ..)`.
#[derive(Clone)]
struct Case {
    op: SymOp,
    from: ElemType,
    inputs: usize,
    to: ElemType,
}

impl Case {
    fn name(&self) -> String {
        format!("{} {} {} {:?}", self.op.name(), self.from, self.to, self.op)
    }
}

fn buffer(elem: ElemType, which: usize) -> BufferId {
    let at = TYPES.iter().position(|&t| t == elem).unwrap();
    BufferId((at * (OPERANDS + 1) + which) as u16)
}

/// One instruction per case; case k writes row k of the result buffer of its type.
fn isa(cases: &[Case]) -> Isa {
    let lanes = || Expr::Int(LANES as i64);
    let operand = |case: &Case, k| {
        let (start, len) = (vec![Expr::Int(0)], vec![lanes()]);
        Slice::OnChip(BufferSlice { buffer: buffer(case.from, k), start, len })
    };
    let result = |case: &Case, row: usize| {
        let (start, len) = (vec![Expr::Int(row as i64), Expr::Int(0)], vec![Expr::Int(1), lanes()]);
        Slice::OnChip(BufferSlice { buffer: buffer(case.to, OPERANDS), start, len })
    };
    let stmt = |op, operands: Vec<usize>, elem, dims| Stmt { name: String::new(), op, operands, elem, dims };
    let instr = |(row, case): (usize, &Case)| {
        let inputs = case.inputs;
        let parameter = |k| stmt(SymOp::Parameter(k as u32), vec![], case.from, vec![lanes()]);
        let mut stmts: Vec<Stmt> = (0..inputs).map(parameter).collect();
        stmts.push(stmt(case.op.clone(), (0..inputs).collect(), case.to, vec![lanes()]));
        stmts.push(stmt(OpKind::Reshape, vec![inputs], case.to, vec![Expr::Int(1), lanes()]));
        Instr {
            name: format!("case{row}"),
            inputs: (0..inputs).map(|k| operand(case, k)).collect(),
            outputs: vec![result(case, row)],
            cost: Expr::Int(1),
            computation: Computation { stmts, roots: vec![inputs + 1] },
            ..Instr::default()
        }
    };
    let buffers = TYPES.iter().flat_map(|&elem| {
        (0..=OPERANDS).map(move |k| Buffer {
            name: format!("{elem}_{k}"),
            access: if k < OPERANDS { vec![LANES] } else { vec![cases.len() as u64, LANES] },
            unit: vec![],
            elem,
            align: vec![1; 2],
            ..Buffer::default()
        })
    });
    Isa {
        name: "elementwise".into(),
        hbm: Hbm { name: "d0".into(), size: 1 << 20, align: 1, ordered: false },
        buffers: buffers.collect(),
        instrs: cases.iter().enumerate().map(instr).collect(),
        ..Isa::default()
    }
}

/// Random bits, small numbers, and the values where rules change.
fn values(elem: ElemType, count: u64, random: &mut Random) -> Vec<u8> {
    let special: &[f64] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e-40,
        -1e-40,
        127.5,
        -128.5,
        3e9,
        -3e9,
        1e19,
        1.175_494_4e-38,
        65504.0,
        88.7,
        -87.4,
    ];
    let mut bytes = Vec::new();
    for _ in 0..count {
        let float = match random.below(3) {
            0 => special[random.below(special.len() as u64) as usize],
            _ => (random.next() as i32 as f64) / f64::from(1u32 << random.below(31)),
        };
        let raw = random.next();
        let small = (raw % 9) as i64 - 4;
        let any = random.below(3) == 0;
        let int = if any {
            raw
        } else if random.below(6) == 0 {
            1 << 63
        } else {
            small as u64
        };
        match elem {
            ElemType::Pred => bytes.push(raw as u8 & 1),
            ElemType::S4 => bytes.push(((raw as i8) << 4 >> 4) as u8),
            ElemType::U4 => bytes.push(raw as u8 & 15),
            ElemType::F32 if any => bytes.extend((raw as u32).to_le_bytes()),
            ElemType::F32 => bytes.extend((float as f32).to_le_bytes()),
            ElemType::F64 if any => bytes.extend(raw.to_le_bytes()),
            ElemType::F64 => bytes.extend(float.to_le_bytes()),
            ElemType::BF16 if any => bytes.extend((raw as u16).to_le_bytes()),
            ElemType::BF16 => bytes.extend(half::bf16::from_f64(float).to_le_bytes()),
            ElemType::F16 if any => bytes.extend((raw as u16).to_le_bytes()),
            ElemType::F16 => bytes.extend(half::f16::from_f64(float).to_le_bytes()),
            // The sign bit of 1 << 63 moved to the type's own.
            _ => {
                let width = elem.bytes() as usize;
                let int = if int == 1 << 63 { int >> (64 - 8 * width) } else { int };
                bytes.extend(&int.to_le_bytes()[..width]);
            }
        }
    }
    bytes
}

fn shape(buffer: &Buffer) -> Shape {
    Shape::new(buffer.elem, buffer.access.clone())
}

fn one(op: InstrId) -> Program {
    Program::Instr { op, alpha: vec![], beta: vec![] }
}

/// A machine whose buffers hold the given bytes.
fn machine<'a>(oracle: &'a Oracle<'a>, isa: &Isa, contents: &[Vec<u8>]) -> Machine<'a> {
    let mut machine = oracle.machine(&[], &[], 0, &[]);
    for (id, bytes) in isa.buffer_ids().zip(contents) {
        let value = Literal::from_bytes(shape(isa.buffer(id)), bytes.as_slice()).unwrap();
        machine.set_slot(id, &vec![0; isa.buffer(id).access.len()], &value).unwrap();
    }
    machine
}

/// Compares all cases that both have; gives how many the evaluator has and how many of these the simulator has.
fn agree(mut cases: Vec<Case>, seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let mut contents = |isa: &Isa| -> Vec<Vec<u8>> {
        isa.buffers.iter().map(|b| values(b.elem, shape(b).elements(), &mut random)).collect()
    };
    let everything = isa(&cases);
    let bytes = contents(&everything);
    let oracle = Oracle::new(&everything);
    let mut numbers = everything.instr_ids();
    cases.retain(|_| {
        let op = numbers.next().unwrap();
        everything.instr(op).instantiate(&everything, &[]).is_ok()
            && machine(&oracle, &everything, &bytes).execute(&one(op)).is_ok()
    });
    let evaluated = cases.len();
    let (isa, executable) = loop {
        let isa = isa(&cases);
        let program = LoopProgram {
            body: Program::Seq(isa.instr_ids().map(one).collect()),
            operands: vec![],
            results: vec![],
            scratch_bytes: 0,
            consts: vec![],
        };
        match Executable::compile(&isa, &emit(&isa, &program).unwrap()) {
            Ok(executable) => break (isa, executable),
            Err(LowerError::Unsupported { instr, .. }) => {
                cases.remove(instr.trim_start_matches("case").parse::<usize>().unwrap());
            }
            Err(error) => panic!("{error}"),
        }
    };
    let oracle = Oracle::new(&isa);
    for _ in 0..8 {
        let mut buffers = contents(&isa);
        let mut machine = machine(&oracle, &isa, &buffers);
        isa.instr_ids().for_each(|op| machine.execute(&one(op)).unwrap());
        executable.run_on_chip(&[], &mut [], &mut buffers).unwrap();
        for (row, case) in cases.iter().enumerate() {
            let result = buffer(case.to, OPERANDS);
            let row_shape = Shape::new(case.to, [1, LANES]);
            let expected = machine.slot_value(result, &[row as i64, 0], &row_shape).unwrap();
            let (width, from_width) = (case.to.bytes() as usize, case.from.bytes() as usize);
            let got = &buffers[usize::from(result.0)][row * LANES as usize * width..];
            for lane in 0..LANES as usize {
                let argument = |k: usize| {
                    &buffers[usize::from(buffer(case.from, k).0)][lane * from_width..][..from_width]
                };
                let (want, got) = (&expected.bytes()[lane * width..][..width], &got[lane * width..][..width]);
                let arguments: Vec<&[u8]> = (0..case.inputs).map(argument).collect();
                assert_eq!(want, got, "{} of {arguments:02x?}", case.name());
            }
        }
    }
    (evaluated, cases.len())
}

fn on_every_type(op: &SymOp, inputs: usize, to: Option<ElemType>) -> Vec<Case> {
    TYPES.map(|from| Case { op: op.clone(), from, inputs, to: to.unwrap_or(from) }).to_vec()
}

#[test]
fn unary() {
    let result = |op| (op == Unary::IsFinite).then_some(ElemType::Pred);
    let cases = Unary::ALL.iter().flat_map(|&op| on_every_type(&OpKind::Unary(op), 1, result(op)));
    let (evaluated, simulated) = agree(cases.collect(), 1);
    assert_eq!(evaluated, simulated);
}

#[test]
fn binary() {
    let cases = Binary::ALL.iter().flat_map(|&op| on_every_type(&OpKind::Binary(op), 2, None));
    let (evaluated, simulated) = agree(cases.collect(), 2);
    assert_eq!(evaluated, simulated);
}

#[test]
fn compare_clamp_and_fma() {
    let compare =
        Direction::ALL.iter().flat_map(|&d| on_every_type(&OpKind::Compare(d), 2, Some(ElemType::Pred)));
    let others = [OpKind::Clamp, OpKind::Fma].into_iter().flat_map(|op| on_every_type(&op, 3, None));
    let (evaluated, simulated) = agree(compare.chain(others).collect(), 3);
    assert_eq!(evaluated, simulated);
}

#[test]
fn convert() {
    let conversions = TYPES.into_iter().flat_map(|to| on_every_type(&OpKind::Convert, 1, Some(to)));
    let (evaluated, simulated) = agree(conversions.collect(), 4);
    assert_eq!(evaluated, simulated);
    let casts = TYPES.into_iter().flat_map(|to| on_every_type(&OpKind::BitcastConvert, 1, Some(to)));
    let (evaluated, simulated) = agree(casts.filter(|c| c.from.bits() == c.to.bits()).collect(), 5);
    assert_eq!(evaluated, simulated);
}

#[test]
fn reduce_precision() {
    let widths = [(1, 0), (2, 3), (4, 3), (5, 2), (5, 10), (8, 0), (8, 7), (8, 23), (11, 30), (11, 52)];
    let cases = widths.into_iter().flat_map(|(exponent_bits, mantissa_bits)| {
        on_every_type(&OpKind::ReducePrecision { exponent_bits, mantissa_bits }, 1, None)
    });
    let (evaluated, simulated) = agree(cases.collect(), 6);
    assert_eq!(evaluated, simulated);
    assert_eq!(evaluated, 4 * widths.len());
}
