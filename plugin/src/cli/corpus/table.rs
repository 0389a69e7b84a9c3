//! `act corpus table`: every region compiled for every target, counted.

use crate::cli::input;
use crate::cli::outcome::{CliError, Report};
use crate::compiler::RegionFile;
use crate::compiler::{CompilerError, TargetCompiler};
use act_generator::Options;
use act_hlo::{ElemType, Graph, NodeId, Op, OpKind};
use act_isa::Isa;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What became of one region on one target.
enum Outcome {
    /// The target has not the element types.
    Foreign,
    Compiled,
    Refused(String),
}

/// Compiles the corpus and writes the table.
///
/// # Errors
/// Files that cannot be read or written, unknown targets.
pub(super) fn table(
    corpus: &Path,
    output: &Path,
    targets: &[String],
    jobs: usize,
) -> Result<Report, CliError> {
    let files = super::files(&[corpus.to_owned()], "hlo")?;
    let regions: Vec<RegionFile> = files.iter().map(|f| input::read_region(f)).collect::<Result<_, _>>()?;
    let short =
        |file: &PathBuf| file.strip_prefix(corpus).unwrap_or(file).with_extension("").display().to_string();
    let names: Vec<String> = files.iter().map(short).collect();
    let mut text = head(&names, &regions);
    let mut details = String::new();
    for target in targets {
        let compiler = || TargetCompiler::new(target, Options::default(), None);
        let outcomes = outcomes(&regions, &compiler, jobs)?;
        summarise(target, &regions, &names, &outcomes, &mut text, &mut details);
        eprintln!("{target}: done");
    }
    text.push_str(&details);
    if output == Path::new("-") {
        return Ok(Report { text, json: json!({}), success: true });
    }
    std::fs::write(output, &text).map_err(|source| CliError::Write { file: output.to_owned(), source })?;
    Ok(Report { text: String::new(), json: json!({}), success: true })
}

fn head(names: &[String], regions: &[RegionFile]) -> String {
    let models: BTreeSet<&str> = names.iter().filter_map(|n| n.split('/').next()).collect();
    let operations: f64 = regions.iter().map(|r| operations(&r.graph)).sum();
    format!(
        "# The corpus\n\n{} distinct regions of {} programs (the models of `python-tests/models`, every one in several \
         sizes and element types, forwards and as a step of training), as offloading finds them: around each \
         contraction the region as it was grown, and the one that a target of the capture took or, where none did, \
         the contraction by itself. Written by `act corpus capture`; this table by `act corpus table`.\n\n\
         A region counts for a target that has its element types. Operations are multiplications and additions of \
         dots, {:.1} million in all.\n\n\
         | target | regions with its types | compiled | share | share of these regions' operations | share of all operations |\n\
         |---|---|---|---|---|---|\n",
        regions.len(),
        models.len(),
        operations / 1e6
    )
}

/// Compiles all regions with a few workers; their outcomes in order.
fn outcomes(
    regions: &[RegionFile],
    compiler: &(dyn Fn() -> Result<TargetCompiler, CompilerError> + Sync),
    jobs: usize,
) -> Result<Vec<Outcome>, CliError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Outcome>> = Mutex::new(BTreeMap::new());
    let shared = compiler()?;
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(region) = regions.get(k) else { return };
                    let outcome = outcome(&shared, region);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(k, outcome);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(done.into_values().collect())
}

fn outcome(compiler: &TargetCompiler, region: &RegionFile) -> Outcome {
    if !has_types(compiler.isa(), &region.graph) {
        return Outcome::Foreign;
    }
    match compiler.compile(&region.graph, &region.operands, &region.results) {
        Ok(_) => Outcome::Compiled,
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

/// Multiplications and additions of a graph's dots.
fn operations(graph: &Graph) -> f64 {
    let of = |id: NodeId| match &graph.node(id).op {
        Op::Dot(dims) => {
            let lhs = graph.shape(graph.node(id).operands[0]);
            let depth: u64 = dims.lhs_contracting.iter().map(|&d| lhs.dims[d]).product();
            2.0 * (depth * graph.shape(id).elements()) as f64
        }
        _ => 0.0,
    };
    graph.ids().map(of).sum()
}

/// Whether some instruction multiplies matrices of the types that every dot has, before or after they are converted,
/// and the region's borders have types of the description.
fn has_types(isa: &Isa, graph: &Graph) -> bool {
    let mut products: BTreeSet<[ElemType; 2]> = BTreeSet::new();
    let mut types: BTreeSet<ElemType> = BTreeSet::new();
    for instr in &isa.instrs {
        let stmts = &instr.computation.stmts;
        types.extend(stmts.iter().map(|stmt| stmt.elem));
        for stmt in stmts.iter().filter(|stmt| matches!(stmt.op, OpKind::Dot(_))) {
            let source = |k: usize| {
                let mut at = stmt.operands[k];
                while matches!(stmts[at].op, OpKind::Convert) {
                    at = stmts[at].operands[0];
                }
                stmts[at].elem
            };
            products.insert([source(0), source(1)]);
        }
    }
    let source = |mut at: NodeId| {
        while matches!(graph.node(at).op, Op::Convert | Op::Copy | Op::Transpose { .. } | Op::Reshape) {
            at = graph.node(at).operands[0];
        }
        graph.shape(at).elem
    };
    let fits = |id: NodeId| {
        let operands = &graph.node(id).operands;
        !matches!(graph.node(id).op, Op::Dot(_))
            || products.contains(&[source(operands[0]), source(operands[1])])
            || products.contains(&[graph.shape(operands[0]).elem, graph.shape(operands[1]).elem])
    };
    let border = graph.params().iter().chain(graph.roots());
    graph.ids().all(fits) && border.into_iter().all(|&id| types.contains(&graph.shape(id).elem))
}

fn summarise(
    target: &str,
    regions: &[RegionFile],
    names: &[String],
    outcomes: &[Outcome],
    text: &mut String,
    details: &mut String,
) {
    let (mut own, mut compiled) = (0u32, 0u32);
    let (mut own_operations, mut done_operations, mut all_operations) = (0.0, 0.0, 0.0);
    let mut reasons: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for ((region, name), outcome) in regions.iter().zip(names).zip(outcomes) {
        let work = operations(&region.graph);
        all_operations += work;
        if let Outcome::Foreign = outcome {
            continue;
        }
        own += 1;
        own_operations += work;
        match outcome {
            Outcome::Compiled => {
                compiled += 1;
                done_operations += work;
            }
            Outcome::Refused(reason) => reasons.entry(general(reason)).or_default().push(name),
            Outcome::Foreign => {}
        }
    }
    let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| {target} | {own} | {compiled} | {:.1} % | {:.1} % | {:.1} % |",
        percent(f64::from(compiled), f64::from(own)),
        percent(done_operations, own_operations),
        percent(done_operations, all_operations)
    );
    if reasons.is_empty() {
        return;
    }
    let _ =
        writeln!(details, "\n## Refused on {target}\n\n| regions | reason | for example |\n|---|---|---|");
    let mut reasons: Vec<(String, Vec<&String>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, regions)| (std::cmp::Reverse(regions.len()), reason.clone()));
    for (reason, regions) in reasons {
        let first = regions.first().map_or("", |name| name.as_str());
        let _ = writeln!(details, "| {} | {} | `{first}` |", regions.len(), reason.replace('|', "\\|"));
    }
}

/// A reason without sizes and numbers, so that equal reasons are counted together.
fn general(reason: &str) -> String {
    let mut out = String::new();
    let mut brackets = 0u32;
    for c in reason.lines().next().unwrap_or_default().chars() {
        match c {
            '[' | '{' => {
                if brackets == 0 {
                    out.push(c);
                    out.push('…');
                }
                brackets += 1;
            }
            ']' | '}' => {
                brackets = brackets.saturating_sub(1);
                if brackets == 0 {
                    out.push(c);
                }
            }
            _ if brackets > 0 => {}
            // A number that is part of a word, as in s8, stays.
            '0'..='9' if !out.ends_with(|p: char| p.is_alphanumeric() || p == 'N') => out.push('N'),
            '0'..='9' if out.ends_with('N') => {}
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_sizes_are_one() {
        let reason = "no instruction computes add of s32[16,33]{1,0} in 400 steps";
        assert_eq!(general(reason), "no instruction computes add of s32[…]{…} in N steps");
        assert_eq!(general(reason), general("no instruction computes add of s32[8]{0} in 7 steps"));
    }

    #[test]
    fn types_decide_whose_a_region_is() {
        let isa = act_isa::targets::load_target("gemmini").unwrap();
        let product = |operand, result| {
            act_hlo::text::parse_graph(&format!(
                "HloModule p\nENTRY main {{\n  a = {operand}[3,4] parameter(0)\n  b = {operand}[4,5] parameter(1)\n  \
                 ROOT d = {result}[3,5] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}"
            ))
            .unwrap()
        };
        assert!(has_types(&isa, &product("s8", "s32")));
        assert!(!has_types(&isa, &product("f32", "f32")));
        assert_eq!(operations(&product("f32", "f32")), 120.0);
    }
}
