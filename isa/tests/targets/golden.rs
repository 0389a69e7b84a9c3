//! Values worked out by hand: what an instruction makes of given operands, on the oracle alone, so on every machine.

use crate::bench::{Bench, POISON};
use act_hlo::random::SplitMix64;
use act_isa::{AttrVal, Isa, Oracle, Slice};
use std::collections::BTreeSet;

/// One instruction, the bytes of its operands and those of its result.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    pub(crate) alpha: Vec<AttrVal>,
    pub(crate) operands: Vec<Vec<u8>>,
    /// Of a result in memory: first to last byte of the window, gaps poisoned.
    pub(crate) result: Vec<u8>,
}

/// Bytes of 32-bit lanes, repeated to `lanes`.
pub(crate) fn lanes(words: &[u32], lanes: usize) -> Vec<u8> {
    words.iter().cycle().take(lanes).flat_map(|w| w.to_le_bytes()).collect()
}

impl Golden {
    /// An instruction that works lane by lane on 32-bit lanes: of each row of the table, all but the last are operands,
    /// the last is the result.
    pub(crate) fn by_lane<const N: usize>(
        name: &'static str,
        alpha: &[AttrVal],
        width: usize,
        table: &[[u32; N]],
    ) -> Golden {
        let column = |at: usize| lanes(&table.iter().map(|row| row[at]).collect::<Vec<u32>>(), width);
        let operands = (0..N - 1).map(column).collect();
        Golden { name, alpha: alpha.to_vec(), operands, result: column(N - 1) }
    }
}

/// Runs them, at several places each.
pub(crate) fn check(isa: &Isa, goldens: &[Golden]) {
    let oracle = Oracle::new(isa);
    let bench = Bench::new(isa, &oracle);
    let mut rng = SplitMix64::new(7);
    for golden in goldens {
        let (_, instr) = bench.instr(golden.name);
        assert_eq!(golden.operands.len(), instr.inputs.len(), "{}", golden.name);
        for _ in 0..4 {
            let outcome = bench.run(&mut rng, golden.name, &golden.alpha, &golden.operands);
            let (before, rest) = outcome.bytes.split_at(outcome.offset);
            let (window, after) = rest.split_at(golden.result.len());
            assert_eq!(window, golden.result, "{} {:?}", golden.name, golden.alpha);
            assert!(before.iter().chain(after).all(|&byte| byte == POISON), "{}", golden.name);
            if matches!(instr.outputs[0], Slice::OnChip(_)) {
                assert_eq!(outcome.bytes.len(), golden.result.len(), "{}", golden.name);
            }
        }
    }
}

/// Every instruction of the description has a vector.
pub(crate) fn check_complete(isa: &Isa, goldens: &[Golden]) {
    let described: BTreeSet<&str> = isa.instrs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(goldens.iter().map(|g| g.name).collect::<BTreeSet<&str>>(), described);
}
