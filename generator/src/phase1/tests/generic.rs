//! Nothing is special to a target: another description, and a known one under other names and sizes.

use super::execute::assert_exact;
use super::{kernel, names, select};
use crate::numerics::FloatPolicy;
use crate::phase1::Selector;
use act_isa::{Isa, load_target};

/// An 8-lane vector unit.
const LANES: &str = r#"
isa lanes
hbm memory: 1 MiB
buffer v: f32[32 | 8]

instr load alpha() beta(addr, r) {
  in  memory[addr :+ 32]
  out v[r :+ 1]
  cost 2
  computation {
    x = u8[32] parameter(0)
    a = u8[1, 8, 4] reshape(x)
    ROOT y = f32[1, 8] bitcast-convert(a)
  }
}
instr store alpha() beta(r, addr) {
  in  v[r :+ 1]
  out memory[addr :+ 32]
  cost 2
  computation {
    x = f32[1, 8] parameter(0)
    a = u8[1, 8, 4] bitcast-convert(x)
    ROOT y = u8[32] reshape(a)
  }
}
instr vadd alpha() beta(a, b, c) {
  in  v[a :+ 1]
  in  v[b :+ 1]
  out v[c :+ 1]
  cost 1
  computation {
    x = f32[1, 8] parameter(0)
    y = f32[1, 8] parameter(1)
    ROOT z = f32[1, 8] add(x, y)
  }
}
instr vmul alpha() beta(a, b, c) {
  in  v[a :+ 1]
  in  v[b :+ 1]
  out v[c :+ 1]
  cost 1
  computation {
    x = f32[1, 8] parameter(0)
    y = f32[1, 8] parameter(1)
    ROOT z = f32[1, 8] multiply(x, y)
  }
}
"#;

#[test]
fn elementwise_kernels_run_on_a_vector_unit_of_eight_lanes() {
    let isa = Isa::parse(LANES, "lanes.taidl").unwrap_or_else(|e| panic!("{e}"));
    let selector = Selector::generate(&isa).unwrap_or_else(|e| panic!("{e}"));
    for shape in ["8", "1,8", "4,8", "32", "2,3,8", "16,4"] {
        let kernel = kernel(&format!(
            "HloModule k\nENTRY main {{\n a = f32[{shape}] parameter(0)\n b = f32[{shape}] parameter(1)\n \
             half = f32[] constant(0.5)\n halves = f32[{shape}] broadcast(half), dimensions={{}}\n \
             c = f32[{shape}] multiply(b, halves)\n ROOT d = f32[{shape}] add(c, a)\n}}"
        ));
        let found =
            select(&selector, &kernel, FloatPolicy::Exact, 2).unwrap_or_else(|e| panic!("{shape}: {e}"));
        let rows = shape.split(',').map(|n| n.parse::<usize>().expect("a size")).product::<usize>() / 8;
        let count = |name: &str| names(&isa, &found[0].graph).iter().filter(|n| *n == name).count();
        assert_eq!((count("vadd"), count("vmul"), count("store")), (rows, rows, rows), "{shape}");
        // The constant is loaded once.
        assert_eq!(count("load"), 2 * rows + 1, "{shape}");
        found.iter().for_each(|s| assert_exact(&isa, &kernel, &s.graph));
    }
}

#[test]
fn a_row_added_to_every_row_is_loaded_once() {
    let isa = Isa::parse(LANES, "lanes.taidl").unwrap_or_else(|e| panic!("{e}"));
    let selector = Selector::generate(&isa).unwrap_or_else(|e| panic!("{e}"));
    let kernel = kernel(
        "HloModule k\nENTRY main {\n a = f32[4,8] parameter(0)\n b = f32[8] parameter(1)\n \
         bs = f32[4,8] broadcast(b), dimensions={1}\n ROOT d = f32[4,8] add(a, bs)\n}",
    );
    let found = select(&selector, &kernel, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
    let loads = names(&isa, &found[0].graph).iter().filter(|n| *n == "load").count();
    assert_eq!(loads, 5);
    assert_exact(&isa, &kernel, &found[0].graph);
}

/// gemmini with another array size and its instructions in another order selects the same instructions.
#[test]
fn order_and_size_of_a_description_do_not_matter() {
    let (_, text) = act_isa::targets().iter().find(|t| t.0 == "gemmini").expect("a known target");
    let small = text.replace("const DIM = 16", "const DIM = 8");
    assert_ne!(*text, small);
    let mut eight = Isa::parse(&small, "small.taidl").unwrap_or_else(|e| panic!("{e}"));
    eight.instrs.reverse();
    let sixteen = load_target("gemmini").unwrap_or_else(|e| panic!("{e}"));
    let tile = |n: u64| {
        kernel(&format!(
            "HloModule m\nENTRY main {{\n a = s8[{n},{n}] parameter(0)\n b = s8[{n},{n}] parameter(1)\n \
             c = s32[{n},{n}] parameter(2)\n \
             p = s32[{n},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n \
             ROOT s = s32[{n},{n}] add(p, c)\n}}"
        ))
    };
    let chosen = |isa: &Isa, n: u64| {
        let selector = Selector::generate(isa).unwrap_or_else(|e| panic!("{e}"));
        let kernel = tile(n);
        let found = select(&selector, &kernel, FloatPolicy::Exact, 1).unwrap_or_else(|e| panic!("{e}"));
        assert_exact(isa, &kernel, &found[0].graph);
        names(isa, &found[0].graph)
    };
    assert_eq!(chosen(&eight, 8), chosen(&sixteen, 16));
}
