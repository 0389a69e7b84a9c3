//! Faults seeded into stitched text: what the oracle computes differently on random data is never proved, and hardly ever
//! anything but refuted.

use super::fixture::Fixture;
use super::verdicts::{ALL, SMALL};
use act_bolt::region::{Permitted, RegionVerdict, parse_stitched};
use act_hlo::compare::compare;
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{Literal, Shape, eval};
use act_isa::{LoopProgram, Oracle, View};
use std::collections::BTreeMap;
use std::io::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Address,
    Bound,
    Order,
    SlotClash,
    MissingFence,
    SwappedOperand,
    WrongConstant,
    MissingInstruction,
}

const KINDS: [Kind; 8] = [
    Kind::Address,
    Kind::Bound,
    Kind::Order,
    Kind::SlotClash,
    Kind::MissingFence,
    Kind::SwappedOperand,
    Kind::WrongConstant,
    Kind::MissingInstruction,
];

/// `%name` of a line that defines a constant, and its value.
fn constant(line: &str) -> Option<(&str, i64)> {
    let (name, rest) = line.trim().split_once(" = arith.constant ")?;
    Some((name, rest.strip_suffix(" : i64")?.parse().ok()?))
}

fn is_instruction(line: &str) -> bool {
    line.trim_start().starts_with("llvm.inline_asm") && !line.contains("\"fence\"")
}

/// The operands of an instruction's line, and where they stand.
fn operands(line: &str) -> Option<(usize, usize, Vec<String>)> {
    let end = line.rfind(" : (")?;
    let begin = line[..end].rfind("{memory}\"")? + "{memory}\"".len() + 1;
    let list = line.get(begin..end)?;
    let names: Vec<String> = list.split(", ").map(str::to_owned).collect();
    names.iter().all(|n| n.starts_with('%')).then_some((begin, end, names))
}

fn pick<T: Clone>(rng: &mut SplitMix64, from: &[T]) -> Option<T> {
    let at = rng.below(from.len().max(1) as u64) as usize;
    from.get(at).cloned()
}

/// The text with one fault of this kind, if it has a place for one.
fn mutant(text: &str, kind: Kind, rng: &mut SplitMix64) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let instructions: Vec<usize> = (0..lines.len()).filter(|&at| is_instruction(&lines[at])).collect();
    let is_bound = |name: &str| text.contains(&format!("to {name} step"));
    match kind {
        Kind::Address | Kind::Bound => {
            let places: Vec<usize> = (0..lines.len())
                .filter(|&at| {
                    constant(&lines[at]).is_some_and(|(name, _)| {
                        name.starts_with('%')
                            && name[1..].parse::<u32>().is_ok()
                            && is_bound(name) == (kind == Kind::Bound)
                    })
                })
                .collect();
            let at = pick(rng, &places)?;
            let (name, value) = constant(&lines[at])?;
            let steps: &[i64] = if kind == Kind::Bound { &[-1, 1] } else { &[1, -1, 2, 4, 16, -16, 64, 128] };
            let line = format!("{name} = arith.constant {} : i64", value + pick(rng, steps)?);
            lines[at] = line;
        }
        Kind::Order => {
            let at = pick(rng, &instructions[..instructions.len().saturating_sub(1)])?;
            let next = *instructions.iter().find(|&&other| other > at)?;
            // Within one block only.
            if lines[at..next]
                .iter()
                .any(|line| line.contains('{') && line.contains("scf.for") || line.trim().starts_with('}'))
            {
                return None;
            }
            let line = lines.remove(at);
            lines.insert(next, line);
        }
        Kind::SlotClash | Kind::SwappedOperand => {
            let at = pick(rng, &instructions)?;
            let (begin, end, mut names) = operands(&lines[at])?;
            if kind == Kind::SwappedOperand {
                let first = rng.below(names.len() as u64) as usize;
                let second = rng.below(names.len() as u64) as usize;
                names.swap(first, second);
            } else {
                let earlier: Vec<String> = instructions
                    .iter()
                    .filter(|&&k| k < at)
                    .filter_map(|&k| operands(&lines[k]))
                    .flat_map(|o| o.2)
                    .collect();
                let slot = rng.below(names.len() as u64) as usize;
                names[slot] = pick(rng, &earlier)?;
            }
            let changed = names.join(", ");
            lines[at].replace_range(begin..end, &changed);
        }
        Kind::MissingFence => {
            let fences: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains("\"fence\"")).collect();
            lines.remove(pick(rng, &fences)?);
        }
        Kind::MissingInstruction => {
            lines.remove(pick(rng, &instructions)?);
        }
        Kind::WrongConstant => {
            // A number within the assembly, or a byte of the constant segment.
            let consts = lines.iter().position(|line| line.contains("act.consts = dense<\"0x"));
            if let Some(at) = consts.filter(|_| rng.below(2) == 0) {
                let begin = lines[at].find("0x")? + 2;
                let digits = lines[at][begin..].find('"')?;
                let digit = begin + rng.below(digits as u64) as usize;
                let old = lines[at][digit..=digit].to_owned();
                let new = if old == "3" { "7" } else { "3" };
                lines[at].replace_range(digit..=digit, new);
            } else {
                let at = pick(rng, &instructions)?;
                let begin = lines[at].find('"')? + 1;
                let end = begin + lines[at][begin..].find('"')?;
                let bytes = lines[at].as_bytes();
                let digits: Vec<usize> = (begin..end)
                    .filter(|&k| bytes[k].is_ascii_digit() && matches!(bytes[k - 1], b' ' | b'=' | b','))
                    .collect();
                let digit = pick(rng, &digits)?;
                let old = bytes[digit];
                let new = if old == b'1' { "2" } else { "1" };
                lines[at].replace_range(digit..=digit, new);
            }
        }
    }
    let changed = lines.join("\n");
    (changed.trim() != text.trim()).then_some(changed)
}

/// Whether the oracle computes something else on random data, or stops.
fn differs(fixture: &Fixture, program: &LoopProgram) -> bool {
    let oracle = Oracle::new(&fixture.isa).strict();
    for (seed, values) in [(101, Values::Small), (102, Values::Unit), (103, Values::Small)] {
        let mut rng = SplitMix64::new(seed);
        let segments: Vec<Vec<u8>> = fixture
            .operands
            .iter()
            .zip(&program.operands)
            .map(|(view, &bytes)| {
                let shape = Shape::new(view.elem, [bytes / view.elem.bytes()]);
                random_literal(&mut rng, &shape, values).bytes().to_vec()
            })
            .collect();
        let inputs: Vec<Literal> =
            fixture.operands.iter().zip(&segments).map(|(view, bytes)| gather(view, bytes)).collect();
        let expected = eval(&fixture.graph, &inputs).unwrap();
        let operands: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let mut results = vec![Vec::new(); program.results.len()];
        if oracle.run(program, &operands, &mut results).is_err() {
            return true;
        }
        for (want, bytes) in expected.iter().zip(results) {
            let got = Literal::from_bytes(want.shape().clone(), bytes);
            if got.is_ok_and(|got| compare(want, &got).within_roundings()) {
                continue;
            }
            return true;
        }
    }
    false
}

fn gather(view: &View, bytes: &[u8]) -> Literal {
    let width = view.elem.bytes() as usize;
    let mut starts = vec![view.start.c0];
    for &(len, stride) in &view.dims {
        starts = starts.iter().flat_map(|&at| (0..len as i64).map(move |k| at + k * stride)).collect();
    }
    let data: Vec<u8> = starts.iter().flat_map(|&at| bytes[at as usize..][..width].to_vec()).collect();
    let shape = Shape::new(view.elem, view.dims.iter().map(|d| d.0).collect::<Vec<u64>>());
    Literal::from_bytes(shape, data).unwrap()
}

#[derive(Default, Debug)]
struct Tally {
    mutants: u32,
    different: u32,
    refuted: u32,
    proved_equal: u32,
}

/// Seeds `wanted` faults and judges each.
fn seed_faults(names: &[&'static str], wanted: u32) {
    let fixtures: Vec<Fixture> = names.iter().map(|name| Fixture::load(name)).collect();
    let mut rng = SplitMix64::new(2026);
    let mut by_kind: BTreeMap<Kind, Tally> = BTreeMap::new();
    let (mut total, mut misses) = (Tally::default(), Vec::new());
    let mut seen = std::collections::BTreeSet::new();
    for round in 0.. {
        if total.mutants == wanted {
            break;
        }
        assert!(round < 40 * wanted, "too few places for faults: {total:?}");
        let fixture = &fixtures[round as usize % fixtures.len()];
        let kind = KINDS[(round as usize / fixtures.len()) % KINDS.len()];
        let Some(text) = mutant(&fixture.text, kind, &mut rng) else { continue };
        // Text that no loop program is made of is no mutant, nor is one that was there before.
        let Ok(program) = parse_stitched(&fixture.isa, &text) else { continue };
        if !seen.insert((fixture.name, text.clone())) {
            continue;
        }
        let different = differs(fixture, &program);
        let report = fixture.judge(&text, Permitted::Xla);
        let refuted = matches!(report.verdict, RegionVerdict::Refuted(_));
        for tally in [&mut total, by_kind.entry(kind).or_default()] {
            tally.mutants += 1;
            tally.different += u32::from(different);
            tally.refuted += u32::from(different && refuted);
            tally.proved_equal += u32::from(!different && report.verdict.is_proved());
        }
        if different && !refuted {
            misses.push(format!("{} {kind:?}: {report}", fixture.name));
        }
        assert!(
            !(different && report.verdict.is_proved()),
            "{} {kind:?}: proved, but the oracle computes something else\n{text}",
            fixture.name
        );
    }
    let _ = writeln!(std::io::stdout(), "{total:?}\n{by_kind:#?}\nmisses: {misses:#?}");
    assert!(20 * total.refuted >= 19 * total.different, "{total:?}: {misses:#?}");
    // A check that calls everything wrong, or finds nothing to judge, would be no check.
    assert!(2 * total.different > total.mutants, "{total:?}");
    assert!(total.proved_equal > 0, "{total:?}");
}

#[test]
fn seeded_faults_are_refuted() {
    seed_faults(&SMALL, 48);
}

/// The whole of it: `cargo test --release -p act-bolt --test region -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn two_hundred_seeded_faults_are_refuted() {
    seed_faults(&ALL, 200);
}
