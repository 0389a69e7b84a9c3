//! Compiling a tile plan: every kernel, the accumulator's slot shared by prologue, body and epilogue, and all of it laid
//! out as one loop program with its scratch memory and constants.

use super::kernel::{KernelCode, KernelCompiler, KernelRecord, KernelRefusal};
use crate::tile::{Nest, Segments, TilePlan};
use act_isa::{Affine, BetaVal, LoopProgram, Phase, Place, Program, Space, TiledKernel, View};
use std::collections::BTreeMap;

/// Alignment of a kernel's part of the scratch and constant segments, in bytes.
const PART_ALIGN: u64 = 64;

/// Start per access dimension of an accumulator's buffer.
type Slot = Vec<i64>;

/// A plan whose kernels are compiled.
pub struct CompiledPlan {
    pub program: LoopProgram,
    pub kernels: Vec<KernelRecord>,
}

/// Where a kernel's own segments begin in those of the region.
#[derive(Clone, Copy)]
struct Bases {
    scratch: u64,
    consts: u64,
}

/// Compiles all kernels of a plan. `operands` and `results` are the byte sizes of the region's segments.
///
/// # Errors
/// The refusal of the first kernel that has no code.
pub fn compile_plan(
    compiler: &dyn KernelCompiler,
    plan: &TilePlan,
    segments: Segments,
    operands: &[u64],
    results: &[u64],
) -> Result<CompiledPlan, KernelRefusal> {
    let mut codes: Vec<Option<KernelRecord>> = vec![None; plan.kernels.len()];
    // Bodies first: they run most often, and their groups with them.
    let bodies = |k: &usize| plan.kernels[*k].kernel.phase != Phase::Body;
    let mut order: Vec<usize> = (0..plan.kernels.len()).collect();
    order.sort_by_key(bodies);
    for &k in &order {
        if codes[k].is_some() {
            continue;
        }
        let together: Vec<usize> = match plan.kernels[k].group {
            Some(group) => order.iter().copied().filter(|&m| plan.kernels[m].group == Some(group)).collect(),
            None => vec![k],
        };
        for (member, record) in compile_group(compiler, plan, &together)? {
            codes[member] = Some(record);
        }
    }
    let kernels: Vec<KernelRecord> = codes.into_iter().flatten().collect();

    let mut program = LoopProgram {
        body: Program::Seq(Vec::new()),
        operands: operands.to_vec(),
        results: results.to_vec(),
        scratch_bytes: plan.packed_bytes,
        consts: plan.consts.clone(),
    };
    let mut bases = Vec::with_capacity(kernels.len());
    for record in &kernels {
        let assembly = &record.code.assembly;
        let scratch = program.scratch_bytes.next_multiple_of(PART_ALIGN);
        program.scratch_bytes = scratch + assembly.scratch_bytes;
        if !assembly.consts.is_empty() {
            program.consts.resize((program.consts.len() as u64).next_multiple_of(PART_ALIGN) as usize, 0);
        }
        bases.push(Bases { scratch, consts: program.consts.len() as u64 });
        program.consts.extend_from_slice(&assembly.consts);
    }
    let layout = Layout { segments, kernels: &kernels, bases: &bases };
    program.body = layout.place(&plan.nest);
    Ok(CompiledPlan { program, kernels })
}

/// Compiles kernels that share an accumulator. The first of `members`, the body, decides its slot: it has the most
/// values beside it. One that has no code with the accumulator there decides next, until all agree or each has decided
/// once.
fn compile_group(
    compiler: &dyn KernelCompiler,
    plan: &TilePlan,
    members: &[usize],
) -> Result<Vec<(usize, KernelRecord)>, KernelRefusal> {
    let mut known: BTreeMap<(usize, Option<Slot>), Result<KernelRecord, KernelRefusal>> = BTreeMap::new();
    let mut compile = |member: usize, slot: Option<&Slot>| {
        let result = known.entry((member, slot.cloned())).or_insert_with(|| {
            let mut kernel = plan.kernels[member].kernel.clone();
            if let Some(slot) = slot {
                pin(&mut kernel, slot);
            }
            let code = compiler.compile(&kernel)?;
            Ok(KernelRecord { kernel, code })
        });
        result.clone()
    };
    let mut led: Vec<usize> = Vec::new();
    let mut first_refusal = None;
    let mut leader = members.first().copied();
    while let Some(lead) = leader.filter(|lead| !led.contains(lead)) {
        led.push(lead);
        // What has no code wherever its accumulator lies has none.
        let record = compile(lead, None).map_err(|own| first_refusal.take().unwrap_or(own))?;
        let slot = on_chip_slot(&record.kernel, &record.code);
        let mut records = vec![(lead, record)];
        leader = None;
        for &member in members.iter().filter(|&&m| m != lead) {
            match compile(member, slot.as_ref()) {
                Ok(record) => records.push((member, record)),
                Err(refusal) if refusal.hopeless => return Err(refusal),
                Err(refusal) => {
                    first_refusal.get_or_insert(refusal);
                    leader = Some(member);
                    break;
                }
            }
        }
        if leader.is_none() {
            return Ok(records);
        }
    }
    let nothing =
        || KernelRefusal { reason: "a group without kernels".to_owned(), hopeless: false, misplaced: false };
    Err(first_refusal.unwrap_or_else(nothing))
}

/// Puts every on-chip place of the kernel at `slot`: it has one, the accumulator.
fn pin(kernel: &mut TiledKernel, slot: &[i64]) {
    for place in kernel.ins.iter_mut().chain(&mut kernel.outs) {
        if let Place::OnChip { slot: own, .. } = place {
            *own = Some(slot.to_vec());
        }
    }
}

fn on_chip_slot(kernel: &TiledKernel, code: &KernelCode) -> Option<Vec<i64>> {
    let ins = kernel.ins.iter().zip(&code.in_slots);
    let outs = kernel.outs.iter().zip(&code.out_slots);
    ins.chain(outs)
        .find(|(place, _)| matches!(place, Place::OnChip { .. }))
        .and_then(|(_, slot)| slot.clone())
}

struct Layout<'a> {
    segments: Segments,
    kernels: &'a [KernelRecord],
    bases: &'a [Bases],
}

impl Layout<'_> {
    fn place(&self, nest: &Nest) -> Program {
        match nest {
            Nest::Seq(parts) => Program::Seq(parts.iter().map(|part| self.place(part)).collect()),
            Nest::For { iv, trip, parallel, body } => Program::For {
                iv: *iv,
                trip: *trip,
                // Iterations that spill would share the memory they spill to.
                parallel: *parallel && !self.spills(body),
                body: Box::new(self.place(body)),
            },
            Nest::HostCopy { from, to } => Program::HostCopy { from: self.view(from), to: self.view(to) },
            Nest::Kernel(k) => {
                let assembly = &self.kernels[*k].code.assembly;
                let instrs = assembly.instrs.iter().map(|instr| Program::Instr {
                    op: instr.op,
                    alpha: instr.alpha.clone(),
                    beta: instr.beta.iter().map(|beta| self.beta(beta, self.bases[*k])).collect(),
                });
                Program::Seq(instrs.collect())
            }
        }
    }

    fn spills(&self, nest: &Nest) -> bool {
        match nest {
            Nest::Seq(parts) => parts.iter().any(|part| self.spills(part)),
            Nest::For { body, .. } => self.spills(body),
            Nest::HostCopy { .. } => true,
            Nest::Kernel(k) => self.kernels[*k].code.assembly.scratch_bytes > 0,
        }
    }

    fn beta(&self, beta: &BetaVal, bases: Bases) -> BetaVal {
        match beta {
            BetaVal::Int(value) => BetaVal::Int(value.clone()),
            BetaVal::Hbm(Space::Scratch, at) => BetaVal::Hbm(Space::Scratch, shifted(at, bases.scratch)),
            BetaVal::Hbm(Space::Consts, at) => BetaVal::Hbm(Space::Consts, shifted(at, bases.consts)),
            BetaVal::Hbm(space, at) => BetaVal::Hbm(self.space(*space), at.clone()),
        }
    }

    fn view(&self, view: &View) -> View {
        View { space: self.space(view.space), ..view.clone() }
    }

    /// The region's own constants and packed tensors stand first in their segments.
    fn space(&self, space: Space) -> Space {
        if space == self.segments.consts() {
            Space::Consts
        } else if space == self.segments.packed() {
            Space::Scratch
        } else {
            space
        }
    }
}

fn shifted(at: &Affine, base: u64) -> Affine {
    Affine { c0: at.c0.saturating_add(i64::try_from(base).unwrap_or(i64::MAX)), ivs: at.ivs.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::KernelSearch;
    use super::*;
    use crate::tile::PlannedKernel;
    use act_hlo::Graph;
    use act_isa::{Assembly, BufferId, Isa};
    use std::cell::RefCell;

    /// A backend that knows for every phase which slots of the accumulator it has code for, the first of them the one
    /// that it takes by itself.
    struct Slots {
        isa: Isa,
        body: Vec<i64>,
        epilogue: Vec<i64>,
        asked: RefCell<Asked>,
    }

    impl KernelCompiler for Slots {
        fn isa(&self) -> &Isa {
            &self.isa
        }

        fn selectable_isa(&self) -> &Isa {
            &self.isa
        }

        fn may_reassociate_floats(&self) -> bool {
            true
        }

        fn compile(&self, kernel: &TiledKernel) -> Result<KernelCode, KernelRefusal> {
            let Some(Place::OnChip { slot, .. }) = kernel.outs.first() else { panic!("no accumulator") };
            let pinned = slot.as_ref().map(|slot| slot[0]);
            self.asked.borrow_mut().push((kernel.phase, pinned));
            let possible = if kernel.phase == Phase::Body { &self.body } else { &self.epilogue };
            let taken = pinned.or_else(|| possible.first().copied()).filter(|slot| possible.contains(slot));
            let refusal =
                || KernelRefusal { reason: format!("{:?}", kernel.phase), hopeless: false, misplaced: false };
            Ok(KernelCode {
                assembly: Assembly::default(),
                in_slots: Vec::new(),
                out_slots: vec![Some(vec![taken.ok_or_else(refusal)?])],
                pii: String::new(),
                allocator: String::new(),
                search: KernelSearch::default(),
            })
        }

        fn cost(&self, _: &Program) -> u64 {
            0
        }
    }

    type Asked = Vec<(Phase, Option<i64>)>;

    /// The slots of epilogue and body, and what the backend was asked for.
    fn slots_of(body: &[i64], epilogue: &[i64]) -> (Result<Vec<i64>, String>, Asked) {
        let kernel = |phase| TiledKernel {
            graph: Graph::new("k"),
            ins: Vec::new(),
            outs: vec![Place::OnChip { buf: BufferId(0), slot: None, carried: None }],
            accumulators: vec![None],
            phase,
        };
        let phases = [Phase::Epilogue, Phase::Body];
        let plan = TilePlan {
            nest: Nest::Seq(Vec::new()),
            kernels: phases.map(|p| PlannedKernel { kernel: kernel(p), group: Some(0) }).to_vec(),
            groups: 1,
            packed_bytes: 0,
            consts: Vec::new(),
        };
        let backend = Slots {
            isa: Isa::default(),
            body: body.to_vec(),
            epilogue: epilogue.to_vec(),
            asked: RefCell::new(Vec::new()),
        };
        let segments = Segments { operands: 0 };
        let found = compile_plan(&backend, &plan, segments, &[], &[]);
        let slot = |r: &KernelRecord| r.code.out_slots[0].clone().unwrap_or_default()[0];
        let found = found.map(|c| c.kernels.iter().map(slot).collect()).map_err(|r| r.reason);
        (found, backend.asked.into_inner())
    }

    #[test]
    fn kernels_of_a_group_agree_on_their_slot_whoever_decides_it() {
        use Phase::{Body, Epilogue};
        // The body decides, and the epilogue follows.
        let (found, asked) = slots_of(&[1, 2], &[2, 1]);
        assert_eq!((found, asked), (Ok(vec![1, 1]), vec![(Body, None), (Epilogue, Some(1))]));
        // It cannot follow: it decides, and the body follows.
        let (found, asked) = slots_of(&[1, 3], &[3]);
        let way = vec![(Body, None), (Epilogue, Some(1)), (Epilogue, None), (Body, Some(3))];
        assert_eq!((found, asked), (Ok(vec![3, 3]), way));
        // Neither can: what failed first is the reason.
        let (found, asked) = slots_of(&[1], &[3]);
        assert_eq!((found, asked.len()), (Err("Epilogue".to_owned()), 4));
        // One that has no code at all is not asked again.
        let (found, asked) = slots_of(&[1], &[]);
        assert_eq!((found, asked.len()), (Err("Epilogue".to_owned()), 3));
    }
}
