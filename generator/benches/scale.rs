//! How compile time grows with the kernel: phase 1 on random kernels of 10 to 390 nodes, and the whole compilation over
//! many kernels of each size, with median, 95th percentile and the slope in a doubly logarithmic plot. The table is
//! printed before criterion's own measurements; `--table` prints it alone.

#[path = "../tests/random_kernels/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod random_kernels;

use act_generator::phase1::Selector;
use act_generator::{Backend, Options, SumOfCosts};
use act_isa::{TiledKernel, load_target};
use criterion::{BenchmarkId, Criterion};
use random_kernels::kernel;
use random_kernels::profiles::{Profile, profile};
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A line on standard output, where a bench reports.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

const SIZES: [usize; 6] = [10, 50, 90, 150, 270, 390];
const TARGETS: [&str; 2] = ["gemmini", "trainium"];
/// Kernels of each size in the table.
const KERNELS: u64 = 20;

fn of_size(profile: &Profile, nodes: usize, seed: u64) -> TiledKernel {
    kernel(profile, seed * 1000 + nodes as u64, nodes)
}

fn quantile(sorted: &[Duration], q: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

/// The whole compilation, warm; times over the kernels that compiled, and of the refusals.
fn table(targets: &[&str]) {
    for target in targets {
        let profile = profile(target);
        let isa = Arc::new(load_target(target).unwrap_or_else(|e| panic!("{e}")));
        let backend = Backend::generate(isa).unwrap_or_else(|e| panic!("{e}"));
        say!("{target}: nodes, compiled, median, 95th percentile, phase 1 (median), refusals (median)");
        let mut points = Vec::new();
        for nodes in SIZES {
            let (mut times, mut selecting, mut refused) = (Vec::new(), Vec::new(), Vec::new());
            for seed in 0..KERNELS {
                let kernel = of_size(profile, nodes, seed);
                // The second run is warm.
                let run = || {
                    let started = Instant::now();
                    let result = backend.compile(black_box(&kernel), &Options::default(), &SumOfCosts);
                    (started.elapsed(), result)
                };
                let (first, result) = run();
                let elapsed = first.min(run().0);
                match result {
                    Ok(compiled) => {
                        times.push(elapsed);
                        selecting.push(compiled.report.explore_time + compiled.report.select_time);
                    }
                    Err(_) => refused.push(elapsed),
                }
            }
            times.sort();
            selecting.sort();
            refused.sort();
            let shown = |sorted: &[Duration], q| match sorted {
                [] => "-".to_owned(),
                _ => format!("{:.1} ms", 1e3 * quantile(sorted, q).as_secs_f64()),
            };
            say!(
                "{nodes:5} {:3}/{KERNELS} {:>10} {:>10} {:>10} {:>10}",
                times.len(),
                shown(&times, 0.5),
                shown(&times, 0.95),
                shown(&selecting, 0.5),
                shown(&refused, 0.5)
            );
            if !times.is_empty() {
                points.push(((nodes as f64).ln(), quantile(&times, 0.5).as_secs_f64().ln()));
            }
        }
        say!("  log-log slope {:.2}", slope(&points));
    }
}

/// Of the line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

fn phase_1(c: &mut Criterion) {
    let options = Options::default();
    for target in TARGETS {
        let profile = profile(target);
        let isa = load_target(target).unwrap_or_else(|e| panic!("{e}"));
        let selector = Selector::generate(&isa).unwrap_or_else(|e| panic!("{e}"));
        let mut group = c.benchmark_group(format!("phase 1/{target}"));
        group.sample_size(10);
        for nodes in SIZES {
            let select = |kernel: &TiledKernel| {
                let selection = selector.select(kernel, options.numerics, &options.selection);
                selection.ok().and_then(|mut s| s.next()).is_some()
            };
            let Some(kernel) = (0..KERNELS).map(|seed| of_size(profile, nodes, seed)).find(|k| select(k))
            else {
                continue;
            };
            group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
                b.iter(|| select(black_box(&kernel)));
            });
        }
        group.finish();
    }
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let others: Vec<&str> = named.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    table(if others.is_empty() { &TARGETS } else { &others });
    if !named.iter().any(|a| a == "--table") {
        let mut criterion = Criterion::default();
        phase_1(&mut criterion);
        criterion.final_summary();
    }
}
