//! Dumped regions with their stitched text.

use act_bolt::Solver;
use act_bolt::region::{Permitted, RegionOptions, RegionReport, RegionSpec, verify_region};
use act_hlo::text::parse_graph;
use act_hlo::{Graph, NodeId};
use act_isa::targets::load_target;
use act_isa::{Isa, Space, View};
use std::path::Path;
use std::sync::LazyLock;

static SOLVER: LazyLock<Solver> = LazyLock::new(|| {
    let path = std::env::var_os("ACT_Z3_LIB").expect("ACT_Z3_LIB names libz3.so, as ci/test sets it");
    Solver::open(Path::new(&path)).unwrap()
});

pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) isa: Isa,
    pub(crate) graph: Graph,
    pub(crate) operands: Vec<View>,
    pub(crate) results: Vec<View>,
    pub(crate) text: String,
}

impl Fixture {
    /// `KERNEL.TARGET`, as the files are named.
    pub(crate) fn load(name: &'static str) -> Fixture {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions");
        let read =
            |extension: &str| std::fs::read_to_string(folder.join(format!("{name}.{extension}"))).unwrap();
        let (hlo, text) = (read("hlo"), read("mlir"));
        let graph = parse_graph(&hlo).unwrap();
        let (_, target) = name.split_once('.').unwrap();
        let views = |ids: &[NodeId], space: fn(u16) -> Space| -> Vec<View> {
            (0..).zip(ids).map(|(k, &id)| View::row_major(space(k), graph.shape(id))).collect()
        };
        let mut operands = views(graph.params(), Space::Operand);
        let results = views(graph.roots(), Space::Result);
        for line in hlo.lines().filter_map(|line| line.strip_prefix("// operand ")) {
            let mut words = line.split(' ');
            let k: usize = words.next().unwrap().parse().unwrap();
            for (dim, stride) in operands[k].dims.iter_mut().zip(words.skip(1)) {
                dim.1 = stride.parse().unwrap();
            }
        }
        Fixture { name, isa: load_target(target).unwrap(), graph, operands, results, text }
    }

    pub(crate) fn spec(&self, numerics: Permitted) -> RegionSpec<'_> {
        RegionSpec { graph: &self.graph, operands: &self.operands, results: &self.results, numerics }
    }

    pub(crate) fn judge(&self, text: &str, numerics: Permitted) -> RegionReport {
        let options = RegionOptions { solver: Some(&SOLVER), ..RegionOptions::default() };
        verify_region(&self.isa, &self.spec(numerics), text, &options)
    }
}
