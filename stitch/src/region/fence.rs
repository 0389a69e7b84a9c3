//! Fences: where main memory is not ordered, a load of what an instruction stored needs one in between, the host's loads
//! too. Works on the finished loop program; knows of instructions only where in main memory they load and store.

use act_isa::{
    Affine, AttrVal, BetaVal, Env, Expr, InstrId, Isa, LoopId, LoopProgram, Program, Slice, Space, View,
};
use std::collections::BTreeMap;

/// Bytes of a segment: first and end, over all iterations of the loops around.
type Span = (Space, i128, i128);

/// The program with a fence before every load that may touch bytes stored since the last one.
pub(super) fn with_fences(isa: &Isa, program: LoopProgram) -> LoopProgram {
    if isa.hbm.ordered {
        return program;
    }
    let mut fencer = Fencer { isa, trips: BTreeMap::new() };
    let body = fencer.fenced(program.body, &mut Vec::new());
    LoopProgram { body, ..program }
}

struct Fencer<'a> {
    isa: &'a Isa,
    /// Of the loops around.
    trips: BTreeMap<LoopId, u64>,
}

impl Fencer<'_> {
    /// `waiting` has the stores that no fence follows yet.
    fn fenced(&mut self, program: Program, waiting: &mut Vec<Span>) -> Program {
        match program {
            Program::Seq(parts) => {
                Program::Seq(parts.into_iter().map(|part| self.fenced(part, waiting)).collect())
            }
            Program::For { iv, trip, parallel, body } => {
                self.trips.insert(iv, trip);
                // What one iteration leaves waits when the next begins.
                let mut left = waiting.clone();
                self.fenced((*body).clone(), &mut left);
                for span in left {
                    if !waiting.contains(&span) {
                        waiting.push(span);
                    }
                }
                let before = waiting.clone();
                let body = Box::new(self.fenced(*body, waiting));
                self.trips.remove(&iv);
                if trip == 0 {
                    *waiting = before;
                }
                Program::For { iv, trip, parallel, body }
            }
            Program::Instr { op, ref alpha, ref beta } => {
                let (loads, stores) = self.spans(op, alpha, beta);
                let program = self.behind(loads, program, waiting);
                waiting.extend(stores);
                program
            }
            Program::HostCopy { ref from, .. } => {
                let loads = vec![self.view(from)];
                self.behind(loads, program, waiting)
            }
            Program::Fence => {
                waiting.clear();
                Program::Fence
            }
        }
    }

    fn behind(&self, loads: Vec<Span>, program: Program, waiting: &mut Vec<Span>) -> Program {
        let meets = |load: &Span| waiting.iter().any(|s| s.0 == load.0 && s.1 < load.2 && load.1 < s.2);
        if !loads.iter().any(meets) {
            return program;
        }
        waiting.clear();
        Program::Seq(vec![Program::Fence, program])
    }

    /// Where an instruction loads and stores.
    fn spans(&self, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> (Vec<Span>, Vec<Span>) {
        let instr = self.isa.instr(op);
        let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
        let of = |slices: &[Slice]| slices.iter().filter_map(|s| self.span(s, &alpha, beta)).collect();
        (of(&instr.inputs), of(&instr.outputs))
    }

    fn span(&self, slice: &Slice, alpha: &[Option<i64>], beta: &[BetaVal]) -> Option<Span> {
        let Slice::Hbm(window) = slice else { return None };
        let mut space = None;
        window.start.for_each_leaf(&mut |leaf| {
            if let Expr::Beta(k) = leaf
                && let Some(BetaVal::Hbm(found, _)) = beta.get(usize::from(*k))
            {
                space = Some(*found);
            }
        });
        let space = space?;
        // All of the segment, where the window is not plain.
        Some(
            self.window(window, alpha, beta)
                .map_or((space, i128::MIN, i128::MAX), |(low, end)| (space, low, end)),
        )
    }

    fn window(
        &self,
        window: &act_isa::model::HbmWindow,
        alpha: &[Option<i64>],
        beta: &[BetaVal],
    ) -> Option<(i128, i128)> {
        let Expr::Beta(k) = window.start else { return None };
        let BetaVal::Hbm(_, start) = beta.get(usize::from(k))? else { return None };
        let registers = self.isa.register_values();
        let env = Env { alpha, beta: &[], registers: &registers };
        let dims =
            window.dims.iter().map(|(len, stride)| Some((len.eval(env).ok()?, stride.eval(env).ok()?)));
        self.reach(start, &dims.collect::<Option<Vec<_>>>()?, 1)
    }

    fn view(&self, view: &View) -> Span {
        let dims: Option<Vec<(i64, i64)>> =
            view.dims.iter().map(|&(len, stride)| Some((i64::try_from(len).ok()?, stride))).collect();
        let reach = dims.and_then(|dims| self.reach(&view.start, &dims, view.elem.bytes()));
        reach.map_or((view.space, i128::MIN, i128::MAX), |(low, end)| (view.space, low, end))
    }

    /// First and end byte of a strided window.
    fn reach(&self, start: &Affine, dims: &[(i64, i64)], width: u64) -> Option<(i128, i128)> {
        let (mut low, mut high) = (i128::from(start.c0), i128::from(start.c0));
        let loops = start.ivs.iter().map(|&(iv, k)| Some((i128::from(*self.trips.get(&iv)?), k)));
        let loops = loops.collect::<Option<Vec<_>>>()?;
        let dims = dims.iter().map(|&(len, stride)| (i128::from(len), stride));
        for (count, step) in loops.into_iter().chain(dims) {
            let far = (count - 1).max(0).checked_mul(i128::from(step))?;
            low = low.checked_add(far.min(0))?;
            high = high.checked_add(far.max(0))?;
        }
        Some((low, high.checked_add(i128::from(width))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::{load_target, oracle::Oracle, parse_program};

    const LOAD: &str = "config_ld 16, 1.0\nmvin operand0, sp[0], 4, 16\n";
    const SPILL: &str = "config_st 16\nmvout scratch, sp[0], 4, 16\n";
    const RELOAD: &str = "config_ld 16, 1.0\nmvin scratch, sp[8], 4, 16\n";
    const OTHER: &str = "config_ld 16, 1.0\nmvin scratch+64, sp[8], 4, 16\n";
    const COPY: &str = "host_copy s8 scratch[16 by 1] -> s8 result0[16 by 1]\n";

    fn fences(program: &Program) -> usize {
        match program {
            Program::Seq(parts) => parts.iter().map(fences).sum(),
            Program::For { body, .. } => fences(body),
            Program::Fence => 1,
            _ => 0,
        }
    }

    /// Fences put in, after which strict mode has no objection.
    fn count(ordered: bool, body: &str) -> usize {
        let mut isa = load_target("gemmini").unwrap();
        isa.hbm.ordered = ordered;
        let text = format!(
            "operands 64\nresults 64\nscratch 128\nhost_copy s8 operand0[64 by 1] -> s8 scratch+64[64 by 1]\n{body}"
        );
        let program = parse_program(&isa, &text).unwrap_or_else(|e| panic!("{e}"));
        let program = with_fences(&isa, program);
        let run = Oracle::new(&isa).strict().run(&program, &[&[0; 64]], &mut [vec![]]);
        run.unwrap_or_else(|fault| panic!("{fault}"));
        fences(&program.body)
    }

    #[test]
    fn a_load_of_what_was_stored_gets_a_fence() {
        assert_eq!(count(false, &format!("{LOAD}{SPILL}{RELOAD}")), 1);
        assert_eq!(count(false, &format!("{LOAD}{SPILL}{RELOAD}{RELOAD}{COPY}")), 1);
        assert_eq!(count(false, &format!("{LOAD}{SPILL}{COPY}")), 1);
        assert_eq!(count(true, &format!("{LOAD}{SPILL}{RELOAD}{COPY}")), 0);
    }

    #[test]
    fn other_bytes_and_fences_that_are_there_need_none() {
        assert_eq!(count(false, &format!("{LOAD}{SPILL}{OTHER}{LOAD}")), 0);
        assert_eq!(count(false, &format!("{LOAD}{SPILL}fence\n{RELOAD}")), 1);
    }

    #[test]
    fn a_store_waits_from_one_iteration_to_the_next() {
        assert_eq!(count(false, &format!("{LOAD}{SPILL}for %i0 in 0..3 {{\n{RELOAD}{SPILL}}}\n")), 1);
        // What the iteration before stored, where nothing waits before the loop.
        let again = "config_st 16\nmvout scratch+64, sp[0], 4, 16\n";
        assert_eq!(count(false, &format!("{LOAD}for %i0 in 0..3 {{\n{OTHER}{again}}}\n")), 1);
        // In the first iteration nothing waits, and the loop's store is met by none of its loads.
        assert_eq!(count(false, &format!("{LOAD}for %i0 in 0..3 {{\n{OTHER}{SPILL}}}\n{COPY}")), 1);
    }
}
