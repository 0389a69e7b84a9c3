//! Shows the sync-skeleton of a case's hardware code and the tensor program that the search brings to it:
//! `cargo run -p act-bolt --example align -- bolt/cases/linear_256.hex`. What the case itself gives as `aligned` is ignored.

use act_bolt::align::align;
use act_bolt::hex::expand;
use act_bolt::hex::printer::print_body;
use std::io::Write;
use std::path::Path;

fn main() {
    let mut out = std::io::stdout();
    for file in std::env::args().skip(1) {
        let (mut case, _) = match act_bolt::load(Path::new(&file)) {
            Ok(loaded) => loaded,
            Err(error) => {
                writeln!(out, "{error}").ok();
                continue;
            }
        };
        case.aligned = None;
        case.relations.clear();
        let Ok(mut expanded) = expand(&case, &[]) else { continue };
        let Some(alignment) = align(&case, &[], &mut expanded) else {
            writeln!(out, "{}: the programs do not run", case.name).ok();
            continue;
        };
        let (of, open) = (alignment.loops, alignment.unaligned);
        writeln!(out, "{}: {} of {of} loops\n{}", case.name, of - open, alignment.skeleton).ok();
        for (number, step) in alignment.steps.iter().enumerate() {
            let fault = step.fault.as_deref().unwrap_or("checked");
            writeln!(out, "{:3}. {} ({:?}: {fault})", number + 1, step.what, step.basis).ok();
        }
        writeln!(out, "{}", print_body(&expanded.names, &alignment.body)).ok();
    }
}
