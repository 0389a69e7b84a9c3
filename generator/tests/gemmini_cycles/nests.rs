//! The loop nests of the ACT paper's appendix F as programs of the gemmini description: C = A B in s8 tiles, with panels
//! of A and B in the scratchpad (schedules of Exo's matmul: loops io, jo, i, j, and ko inside).

use act_hlo::ElemType;
use act_isa::{Affine, AttrVal, BetaVal, Isa, LoopId, LoopProgram, Program, Space};

/// Which of the B matrix is resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resident {
    /// The panel of one jo, loaded anew in every round of io and jo.
    Panel,
    /// All of it, loaded once.
    Whole,
}

/// One row of the appendix's tables.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// "M x N x K" as the tables are captioned.
    pub(crate) shape: String,
    pub(crate) io: i64,
    pub(crate) i: i64,
    pub(crate) jo: i64,
    pub(crate) j: i64,
    pub(crate) ko: i64,
    pub(crate) resident: Resident,
    /// Cycles measured on RTL.
    pub(crate) cycles: u64,
}

impl Row {
    /// Accumulator rows that the nest uses.
    pub(crate) fn accumulator_rows(&self) -> i64 {
        64 * if self.jo * self.j == 1 { self.i } else { self.j }
    }
}

/// The appendix's tables.
pub(crate) fn rows() -> Vec<Row> {
    let lines = include_str!("appendix_f.csv").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let [shape, io, i, jo, j, ko, resident, cycles] = fields[..] else { panic!("{line}") };
            let number = |text: &str| text.parse::<i64>().expect("a number");
            let resident = if resident == "panel" { Resident::Panel } else { Resident::Whole };
            Row {
                shape: shape.to_owned(),
                io: number(io),
                i: number(i),
                jo: number(jo),
                j: number(j),
                ko: number(ko),
                resident,
                cycles: number(cycles).unsigned_abs(),
            }
        })
        .collect()
}

/// What is different in the first rounds of a loop.
#[derive(Clone, Copy)]
struct First {
    io: bool,
    jo: bool,
    i: bool,
    j: bool,
}

struct Builder<'a> {
    isa: &'a Isa,
    row: &'a Row,
    loops: u32,
}

/// The positions of the loops around.
#[derive(Clone, Default)]
struct At {
    io: Affine,
    jo: Affine,
    i: Affine,
    j: Affine,
}

/// The nest of a row, C = A B with A of operand 0 and B of operand 1.
pub(crate) fn program(isa: &Isa, row: &Row) -> LoopProgram {
    let mut builder = Builder { isa, row, loops: 0 };
    let once = row.resident == Resident::Whole;
    let body = builder.rounds(row.io, once, |b, io, first| {
        let at = At { io: io.clone(), ..At::default() };
        b.rounds(b.row.jo, true, |b, jo, jo_first| {
            let at = At { jo: jo.clone(), ..at.clone() };
            b.rounds(b.row.i, true, |b, i, i_first| {
                let at = At { i: i.clone(), ..at.clone() };
                b.rounds(b.row.j, jo_first, |b, j, j_first| {
                    let at = At { j: j.clone(), ..at.clone() };
                    b.tile(&at, First { io: first || !once, jo: jo_first, i: i_first, j: j_first })
                })
            })
        })
    });
    let (m, n, k) = (row.io * row.i * 16, row.jo * row.j * 64, row.ko * 64);
    let size = |bytes: i64| bytes.unsigned_abs() * ElemType::S8.bytes();
    LoopProgram {
        body,
        operands: vec![size(m * k), size(k * n)],
        results: vec![size(m * n)],
        scratch_bytes: 0,
        consts: Vec::new(),
    }
}

fn sum(terms: &[(&Affine, i64)], constant: i64) -> Affine {
    terms.iter().fold(Affine::constant(constant), |sum, (term, factor)| {
        let scaled = term.checked_scale(*factor).expect("small");
        sum.checked_add(&scaled).expect("small")
    })
}

impl Builder<'_> {
    /// A loop, its first round apart where that is different.
    fn rounds(
        &mut self,
        trip: i64,
        peel: bool,
        mut body: impl FnMut(&mut Self, &Affine, bool) -> Program,
    ) -> Program {
        let mut parts = Vec::new();
        if peel {
            parts.push(body(self, &Affine::constant(0), true));
        }
        let done = i64::from(peel);
        if trip > done {
            let iv = LoopId(self.loops);
            self.loops += 1;
            let inner = body(self, &Affine { c0: done, ivs: vec![(iv, 1)] }, false);
            let trip = (trip - done).unsigned_abs();
            parts.push(Program::For { iv, trip, parallel: false, body: Box::new(inner) });
        }
        Program::Seq(parts)
    }

    fn instr(&self, name: &str, alpha: &[AttrVal], beta: Vec<BetaVal>) -> Program {
        let op = self.isa.instr_named(name).unwrap_or_else(|| panic!("no instruction {name}"));
        Program::Instr { op, alpha: alpha.to_vec(), beta }
    }

    /// A tile of 16 rows and 64 columns of C.
    fn tile(&mut self, at: &At, first: First) -> Program {
        let row = self.row;
        let (n, depth) = (row.jo * row.j * 64, row.ko * 64);
        let int = AttrVal::Int;
        let tile_row = sum(&[(&at.io, row.i * 16), (&at.i, 16)], 0);
        let tile_column = sum(&[(&at.jo, row.j * 64), (&at.j, 64)], 0);
        let slot = if row.jo * row.j == 1 { &at.i } else { &at.j };
        let c = |nn: i64| BetaVal::Int(sum(&[(slot, 64)], nn * 16));
        let mut parts = Vec::new();
        for nn in 0..4 {
            parts.push(self.instr("zero_acc", &[int(16), int(16)], vec![c(nn)]));
        }
        // A lies at row 0, B right behind it.
        let b_first = row.i * row.ko * 64;
        let (load_a, load_b) = (first.jo && first.j, first.i && first.io);
        parts.push(self.rounds(row.ko, false, |b, ko, _| {
            let mut step = Vec::new();
            let a_row = sum(&[(&at.i, row.ko * 64), (ko, 64)], 0);
            let column = match row.resident {
                Resident::Panel => at.j.clone(),
                Resident::Whole => sum(&[(&at.jo, row.j), (&at.j, 1)], 0),
            };
            let b_row = sum(&[(&column, row.ko * 256), (ko, 256)], b_first);
            if load_a {
                let from = sum(&[(&tile_row, depth), (ko, 64)], 0);
                let beta = vec![BetaVal::Hbm(Space::Operand(0), from), BetaVal::Int(a_row.clone())];
                step.push(b.instr("mvin_blocks", &[int(16), int(4), int(depth)], beta));
            }
            if load_b {
                for kk in 0..4 {
                    let from = sum(&[(ko, 64 * n), (&tile_column, 1)], kk * 16 * n);
                    let to = sum(&[(&b_row, 1)], kk * 64);
                    let beta = vec![BetaVal::Hbm(Space::Operand(1), from), BetaVal::Int(to)];
                    step.push(b.instr("mvin_blocks", &[int(16), int(4), int(n)], beta));
                }
            }
            for kk in 0..4 {
                for nn in 0..4 {
                    let a = BetaVal::Int(sum(&[(&a_row, 1)], kk * 16));
                    let weights = BetaVal::Int(sum(&[(&b_row, 1)], kk * 64 + nn * 16));
                    step.push(b.instr("matmul_acc", &[int(16), int(16), int(16)], vec![a, weights, c(nn)]));
                }
            }
            Program::Seq(step)
        }));
        for nn in 0..4 {
            let to = sum(&[(&tile_row, n), (&tile_column, 1)], nn * 16);
            let beta = vec![c(nn), BetaVal::Hbm(Space::Result(0), to)];
            let alpha = [int(16), int(16), int(n), AttrVal::F32(1.0f32.to_bits())];
            parts.push(self.instr("mvout_acc_scaled", &alpha, beta));
        }
        Program::Seq(parts)
    }
}
