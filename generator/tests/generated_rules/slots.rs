//! The identity instructions: boxes of a slot and adjacent slots in any access dimension, of one buffer.

use super::Outcome::{Refused, Uses};
use super::{check, memory, parse};

/// A buffer of this rank, whose tensors are loaded and stored in slots of the given sizes only, and an instruction that
/// negates slots of other sizes.
fn blocks(whole: &[u64], block: &[u64], align: &str) -> act_isa::Isa {
    let rank = whole.len();
    let list = |lens: &[u64]| lens.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let slot = |of: &str, lens: &[u64]| {
        lens.iter().enumerate().map(|(d, len)| format!("{of}{d} :+ {len}")).collect::<Vec<_>>().join(", ")
    };
    let beta = |of: &str| (0..rank).map(|d| format!("{of}{d}")).collect::<Vec<_>>().join(", ");
    let bytes = whole.iter().product::<u64>() * 4;
    parse(&format!(
        "buffer v: s32[{extent} | ] {align}
instr load beta(addr, {r}) {{
  in  d0[addr :+ {bytes}]
  out v[{slot_r}]
  computation {{ x = u8[{bytes}] parameter(0)  y = u8[{w}, 4] reshape(x)  ROOT z = s32[{w}] bitcast-convert(y) }}
}}
instr store beta({r}, addr) {{
  in  v[{slot_r}]
  out d0[addr :+ {bytes}]
  computation {{ x = s32[{w}] parameter(0)  y = u8[{w}, 4] bitcast-convert(x)  ROOT z = u8[{bytes}] reshape(y) }}
}}
instr op beta({x}, {z}) {{
  in  v[{slot_x}]
  out v[{slot_z}]
  computation {{ a = s32[{b}] parameter(0)  ROOT y = s32[{b}] negate(a) }}
}}\n",
        extent = list(&whole.iter().map(|n| n * 3).collect::<Vec<_>>()),
        r = beta("r"),
        x = beta("x"),
        z = beta("z"),
        slot_r = slot("r", whole),
        slot_x = slot("x", block),
        slot_z = slot("z", block),
        w = list(whole),
        b = list(block),
    ))
}

fn negated(dims: &str) -> String {
    format!("x = s32[{dims}] parameter(0) ROOT r = s32[{dims}] negate(x)")
}

#[test]
fn boxes_and_neighbours_in_every_dimension() {
    let cases = [
        (blocks(&[12], &[4], ""), "12", 3),
        (blocks(&[4, 6], &[2, 6], ""), "4,6", 2),
        (blocks(&[4, 6], &[4, 3], ""), "4,6", 2),
        (blocks(&[4, 6], &[2, 2], ""), "4,6", 6),
        (blocks(&[2, 4, 6], &[2, 4, 2], ""), "2,4,6", 3),
        (blocks(&[2, 4, 6], &[2, 2, 6], ""), "2,4,6", 2),
        (blocks(&[2, 4, 6], &[1, 4, 6], ""), "2,4,6", 2),
        (blocks(&[2, 4, 6], &[1, 2, 3], ""), "2,4,6", 8),
        (blocks(&[8, 8], &[4, 4], "align(4, 4)"), "8,8", 4),
    ];
    for (isa, dims, uses) in &cases {
        check(&[(isa, "op", &[(&negated(dims), Uses(*uses))])]);
    }
}

/// An instruction that negates slots of these sizes; anything is loaded and stored.
fn ragged(block: &[u64]) -> act_isa::Isa {
    let rank = block.len();
    let buffer = memory("s32", rank, 16);
    let slot = |of: &str| {
        block.iter().enumerate().map(|(d, len)| format!("{of}{d} :+ {len}")).collect::<Vec<_>>().join(", ")
    };
    let beta = |of: &str| (0..rank).map(|d| format!("{of}{d}")).collect::<Vec<_>>().join(", ");
    let b = block.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    parse(&format!(
        "{buffer}
instr op beta({x}, {z}) {{
  in  s32_{rank}[{slot_x}]
  out s32_{rank}[{slot_z}]
  computation {{ a = s32[{b}] parameter(0)  ROOT y = s32[{b}] negate(a) }}
}}\n",
        x = beta("x"),
        z = beta("z"),
        slot_x = slot("x"),
        slot_z = slot("z"),
    ))
}

#[test]
fn ragged_edges() {
    // The last block reaches beyond the value; nobody reads what is there.
    let cases = [
        (ragged(&[4]), "10", 3),
        (ragged(&[4]), "3", 1),
        (ragged(&[4, 3]), "4,7", 3),
        (ragged(&[2, 3, 2]), "2,3,5", 3),
        (ragged(&[2, 2, 3]), "2,5,3", 3),
        (ragged(&[2, 2, 3]), "3,2,3", 2),
    ];
    for (isa, dims, uses) in &cases {
        check(&[(isa, "op", &[(&negated(dims), Uses(*uses))])]);
    }
}

#[test]
fn slots_that_may_not_begin_there() {
    // Blocks of four would begin at 4, where none may.
    let isa = blocks(&[12], &[4], "align(8)");
    check(&[(&isa, "op", &[(&negated("12"), Refused)])]);
    let isa = blocks(&[4, 6], &[4, 3], "align(1, 2)");
    check(&[(&isa, "op", &[(&negated("4,6"), Refused)])]);
}

#[test]
fn neighbours_are_of_one_buffer() {
    // Two buffers: what comes from the other one has to be moved first.
    let isa = parse(
        "buffer v: s32[64 | ]
buffer w: s32[64 | ]
instr load_v beta(addr, r) {
  in  d0[addr :+ 16]
  out v[r :+ 4]
  computation { x = u8[16] parameter(0)  y = u8[4, 4] reshape(x)  ROOT z = s32[4] bitcast-convert(y) }
}
instr abs_w beta(x, z) {
  in  v[x :+ 4]
  out w[z :+ 4]
  computation { a = s32[4] parameter(0)  ROOT y = s32[4] abs(a) }
}
instr move beta(x, z) {
  in  w[x :+ 4]
  out v[z :+ 4]
  computation { a = s32[4] parameter(0)  ROOT y = s32[4] copy(a) }
}
instr op beta(x, z) {
  in  v[x :+ 8]
  out v[z :+ 8]
  computation { a = s32[8] parameter(0)  ROOT y = s32[8] negate(a) }
}
instr store beta(r, addr) {
  in  v[r :+ 8]
  out d0[addr :+ 32]
  computation { x = s32[8] parameter(0)  y = u8[8, 4] bitcast-convert(x)  ROOT z = u8[32] reshape(y) }
}\n",
    );
    let both = "x = s32[4] parameter(0) y = s32[4] parameter(1) t = s32[4] abs(y) c = s32[8] concatenate(x, t), dimensions={0} ROOT r = s32[8] negate(c)";
    let twice =
        "x = s32[4] parameter(0) c = s32[8] concatenate(x, x), dimensions={0} ROOT r = s32[8] negate(c)";
    check(&[(&isa, "move", &[(both, Uses(1))]), (&isa, "load_v", &[(both, Uses(2)), (twice, Uses(2))])]);
}
