//! The queue model against timelines drawn by hand, and its extrapolated loops against the same loops run to the end.

use super::nest::Lowering;
use super::queues::Machine;
use super::{CostModel, QueueModel, SumOfCosts, model_of};
use act_hlo::random::SplitMix64;
use act_isa::{Affine, AttrVal, BetaVal, Isa, LoopId, Program, Space};

/// A load unit and one that adds, with the queues and banks given.
fn isa(timing: &str) -> Isa {
    let text = format!(
        "isa t
hbm d0: 64 KiB
buffer v: f32[64 | 16]
units load, add
{timing}
instr load alpha(n: 1..16) beta(addr, row) {{
  in  d0[addr :+ 64 * n]
  out v[row :+ n]
  cost 10
  unit load
  computation {{
    x = u8[64 * n] parameter(0)
    y = u8[n, 16, 4] reshape(x)
    ROOT z = f32[n, 16] bitcast-convert(y)
  }}
}}
instr add alpha(n: 1..16) beta(a, b, c) {{
  in  v[a :+ n]
  in  v[b :+ n]
  out v[c :+ n]
  cost 4
  unit add
  computation {{
    x = f32[n, 16] parameter(0)
    y = f32[n, 16] parameter(1)
    ROOT z = f32[n, 16] add(x, y)
  }}
}}
instr accumulate alpha(n: 1..16) beta(a, c) {{
  in  v[a :+ n]
  in  v[c :+ n]
  out v[c :+ n]
  cost 4
  unit add
  computation {{
    x = f32[n, 16] parameter(0)
    y = f32[n, 16] parameter(1)
    ROOT z = f32[n, 16] add(x, y)
  }}
}}
"
    );
    Isa::parse(&text, "t.taidl").unwrap_or_else(|e| panic!("{e}"))
}

fn at(c0: i64, steps: &[(u32, i64)]) -> Affine {
    Affine { c0, ivs: steps.iter().map(|&(iv, k)| (LoopId(iv), k)).collect() }
}

fn load(isa: &Isa, n: i64, row: Affine) -> Program {
    let beta = vec![BetaVal::Hbm(Space::Operand(0), Affine::constant(0)), BetaVal::Int(row)];
    Program::Instr { op: isa.instr_named("load").unwrap(), alpha: vec![AttrVal::Int(n)], beta }
}

fn add(isa: &Isa, n: i64, [a, b, c]: [Affine; 3]) -> Program {
    let beta = [a, b, c].map(BetaVal::Int).to_vec();
    Program::Instr { op: isa.instr_named("add").unwrap(), alpha: vec![AttrVal::Int(n)], beta }
}

fn repeat(iv: u32, trip: u64, body: Vec<Program>) -> Program {
    Program::For { iv: LoopId(iv), trip, parallel: false, body: Box::new(Program::Seq(body)) }
}

fn fixed(row: i64) -> Affine {
    Affine::constant(row)
}

#[test]
fn what_runs_at_the_same_time_counts_once() {
    let isa = isa("queue load { issue 1 latency 5 }\nqueue add { issue 1 start 2 }");
    let cost = |parts: Vec<Program>| QueueModel.cost(&isa, &Program::Seq(parts));
    // Issued at 1, occupies its unit to 11, complete at 16.
    assert_eq!(cost(vec![load(&isa, 1, fixed(0))]), 16);
    // The second one starts at 11 and is complete at 26.
    let loads = || vec![load(&isa, 1, fixed(0)), load(&isa, 1, fixed(1))];
    assert_eq!(cost(loads()), 26);
    // The addition of other rows runs beside them; that of theirs waits for both, 26 + 4 + 2.
    let beside = add(&isa, 1, [fixed(8), fixed(9), fixed(10)]);
    assert_eq!(cost([loads(), vec![beside]].concat()), 26);
    let after = add(&isa, 1, [fixed(0), fixed(1), fixed(2)]);
    assert_eq!(cost([loads(), vec![after.clone()]].concat()), 32);
    // A load that overwrites an operand waits for the addition, 32 + 10 + 5; one of other rows does not, 26 + 10 + 5.
    assert_eq!(cost([loads(), vec![after.clone(), load(&isa, 1, fixed(1))]].concat()), 47);
    assert_eq!(cost([loads(), vec![after, load(&isa, 1, fixed(5))]].concat()), 36);
    // Nothing passes a fence: issued at 17, complete at 32.
    assert_eq!(cost(vec![load(&isa, 1, fixed(0)), Program::Fence, load(&isa, 1, fixed(1))]), 32);
}

#[test]
fn queues_are_finite_and_units_may_be_serial() {
    let loads = |isa: &Isa| Program::Seq((0..3).map(|row| load(isa, 1, fixed(row))).collect());
    // 1 + 3 · 10 + 5.
    let wide = isa("queue load { issue 1 latency 5 }");
    assert_eq!(QueueModel.cost(&wide, &loads(&wide)), 36);
    // Each is issued when the one before is complete: 3 · (1 + 10 + 5).
    let narrow = isa("queue load { depth 1 issue 1 latency 5 }");
    assert_eq!(QueueModel.cost(&narrow, &loads(&narrow)), 48);
    // 1 + 3 · (10 + 5).
    let serial = isa("queue load { issue 1 latency 5 serial }");
    assert_eq!(QueueModel.cost(&serial, &loads(&serial)), 46);
    // A unit without a queue runs alone.
    let alone = isa("queue add { issue 1 }");
    assert_eq!(QueueModel.cost(&alone, &loads(&alone)), 30);
    assert_eq!(model_of(&isa("")).cost(&wide, &loads(&wide)), SumOfCosts.cost(&wide, &loads(&wide)));
    assert_eq!(model_of(&wide).cost(&wide, &loads(&wide)), 36);
}

#[test]
fn operands_in_one_bank_and_ports_in_use_take_longer() {
    let isa = isa("queue load { issue 1 }\nqueue add { issue 1 yields }\nbanks v(4) { port 1 }");
    let cost = |a: i64, b: i64, c: i64| QueueModel.cost(&isa, &add(&isa, 4, [fixed(a), fixed(b), fixed(c)]));
    // 1 + max(4, 4).
    assert_eq!(cost(0, 16, 32), 5);
    // Two reads of 4 rows, and with the write three.
    assert_eq!(cost(0, 4, 32), 9);
    assert_eq!(cost(0, 4, 8), 13);
    // Half of the second operand lies in the next bank: 4 + 2.
    assert_eq!(cost(0, 14, 32), 7);
    // A load, complete at 11, has the port from 7 on. Additions of its bank are issued from 2 on: the first one ends at
    // 6, the second would at 10, and waits for the port until 14. One of another bank does not.
    let pair = |row: i64| {
        let adds = [16, 16].map(|b| add(&isa, 4, [fixed(0), fixed(b), fixed(32)]));
        Program::Seq([vec![load(&isa, 4, fixed(row))], adds.to_vec()].concat())
    };
    assert_eq!(QueueModel.cost(&isa, &pair(48)), 11);
    assert_eq!(QueueModel.cost(&isa, &pair(4)), 14);
}

/// Operands of one bank take longer whether or not their unit yields to others.
#[test]
fn bank_conflicts_of_a_unit_by_itself() {
    let isa = isa("queue add { issue 1 }\nbanks v(4) { port 1 }");
    let cost = |a: i64, b: i64, c: i64| QueueModel.cost(&isa, &add(&isa, 4, [fixed(a), fixed(b), fixed(c)]));
    assert_eq!((cost(0, 16, 32), cost(0, 4, 32), cost(0, 4, 8)), (5, 9, 13));
}

/// Within a unit what is read must be complete; what is accumulated onto need not be.
#[test]
fn only_what_is_read_is_waited_for_within_a_unit() {
    let isa = isa("queue add { issue 1 latency 6 }");
    let cost = |parts: Vec<Program>| QueueModel.cost(&isa, &Program::Seq(parts));
    let sum = |of: [i64; 3]| add(&isa, 1, of.map(fixed));
    // Issued at 1, off the unit at 5, complete at 11. The next one starts at 5 and is complete at 15.
    assert_eq!(cost(vec![sum([0, 1, 2]), sum([3, 4, 5])]), 15);
    // It writes what the first one reads or writes: the unit keeps the order.
    assert_eq!(cost(vec![sum([0, 1, 2]), sum([3, 4, 0])]), 15);
    assert_eq!(cost(vec![sum([0, 1, 2]), sum([3, 4, 2])]), 15);
    // It reads what the first one wrote, from 11 on: complete at 21.
    assert_eq!(cost(vec![sum([0, 1, 2]), sum([2, 3, 4])]), 21);
    // It adds to what the first one wrote.
    let op = isa.instr_named("accumulate").unwrap();
    let onto = |a: i64, to: i64| Program::Instr {
        op,
        alpha: vec![AttrVal::Int(1)],
        beta: [a, to].map(|row| BetaVal::Int(fixed(row))).to_vec(),
    };
    assert_eq!(cost(vec![sum([0, 1, 2]), onto(3, 2)]), 15);
    assert_eq!(cost(vec![onto(3, 2), onto(4, 2)]), 15);
    assert_eq!(cost(vec![sum([0, 1, 2]), onto(2, 3)]), 21);
}

/// Costs without any extrapolation.
fn exact(isa: &Isa, program: &Program) -> u64 {
    let nest = Lowering::new(isa).nest(program);
    let mut machine = Machine::new(isa);
    machine.extrapolates = false;
    machine.run(&nest, &mut Vec::new());
    machine.finished()
}

#[test]
fn loops_cost_what_they_cost_run_to_the_end() {
    let isa =
        isa("queue load { depth 3 issue 2 latency 17 }\nqueue add { depth 5 issue 3 start 1 yields }\n\
                   banks v(4) { port 1 }");
    let mut rng = SplitMix64::new(7);
    let mut below = |n: u64| (rng.next_u64() % n) as i64;
    for _ in 0..200 {
        let (outer, inner) = (2 + below(30) as u64, 1 + below(6) as u64);
        // What moves, moves alike: which of them meet stays the same.
        let steps: Vec<(u32, i64)> =
            [(0, below(2)), (1, below(3))].into_iter().filter(|step| step.1 != 0).collect();
        let mut row = || at(below(24), &steps);
        let instrs = vec![load(&isa, 1, row()), load(&isa, 3, row()), add(&isa, 2, [row(), row(), row()])];
        let nest = repeat(0, outer, vec![repeat(1, inner, instrs)]);
        // A skip may lose the waits of a round or two: 40 cycles, beside a twentieth.
        let (modelled, exact) = (QueueModel.cost(&isa, &nest), exact(&isa, &nest));
        assert!(modelled.abs_diff(exact) <= exact / 20 + 40, "{modelled} instead of {exact}: {nest:?}");
        assert!(QueueModel.nest_bound(&isa, &nest) <= exact);
    }
    // Rounds by the million cost no more time than a few.
    let long =
        |trip| repeat(0, trip, vec![load(&isa, 1, fixed(0)), add(&isa, 1, [fixed(0), fixed(1), fixed(2)])]);
    let round = QueueModel.cost(&isa, &long(200)) - QueueModel.cost(&isa, &long(199));
    let difference = QueueModel.cost(&isa, &long(1 << 40)) - QueueModel.cost(&isa, &long(200));
    assert_eq!(difference, round * ((1 << 40) - 200));
}
