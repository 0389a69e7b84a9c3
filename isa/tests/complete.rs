//! What is stated for descriptions without ranges, and that nothing else is.

use act_isa::syntax::Problem;
use act_isa::{AttrKind, AttrVal, Isa};

const HEAD: &str = "isa t hbm d0: 1 GiB buffer v: f32[8 | 4] buffer w: s8[16, 6 | ]
instr fill beta(a, b) { out v[a :+ 1] out w[b :+ 1, 0 :+ 6] ENTRY f {
  %x = f32[1,4] constant(0); %y = s8[1,6] constant(0); return x, y } }
instr drain beta(a, b, c, d) { in v[a :+ 1] in w[b :+ 1, 0 :+ 6] out d0[c :+ 16] out d0[d :+ 6] ENTRY d {
  %x = f32[1,4] parameter(0); %y = s8[1,6] parameter(1); %p = u8[1,4,4] bitcast_convert(%x); %q = u8[1,6] bitcast_convert(%y);
  %r = u8[16] reshape(%p); %s = u8[6] reshape(%q); return r, s } }
";

/// The last instruction of a completed description.
fn completed(instr: &str) -> (Isa, Vec<AttrKind>) {
    let (isa, mut warnings) =
        Isa::parse_and_complete(&format!("{HEAD}{instr}"), "t").unwrap_or_else(|e| panic!("{e}"));
    // One of the head stores two values.
    warnings.list.retain(|w| !matches!(w.problem, Problem::SeveralStores { .. }));
    assert!(warnings.list.is_empty(), "{warnings}");
    let kinds = isa.instrs[2].alpha.iter().map(|a| a.kind.clone()).collect();
    (isa, kinds)
}

fn range(min: i64, max: i64) -> AttrKind {
    AttrKind::Int { min, max }
}

#[test]
fn sizes_are_bounded_by_buffers() {
    let copy = "ENTRY f { %x = s8[`@c.m`, `@c.n + @c.n`] parameter(0); ROOT %y = s8[`@c.m`, `2 * @c.n`] copy(%x); } }";
    let (isa, kinds) = completed(&format!(
        "instr f alpha(m, n) beta(a, b) {{ in w[a :+ m, 0 :+ n * 2] out w[b :+ m, 0 :+ 2 * n] {copy}"
    ));
    assert_eq!(kinds[0], range(1, 16));
    // 2 n is no attribute: its bound is a requirement, once for either spelling, and the two are not equated.
    assert_eq!(isa.instrs[2].requires.len(), 2);
    let legal = |n: i64| isa.instrs[2].instantiate(&isa, &[AttrVal::Int(1), AttrVal::Int(n)]).is_ok();
    assert_eq!((0..6).filter(|&n| legal(n)).collect::<Vec<i64>>(), [1, 2, 3]);
}

#[test]
fn a_stated_range_and_stated_requirements_stay() {
    let (isa, kinds) = completed(
        "instr f alpha(n: 2..3) beta(a, b) { in v[a :+ n] out v[b :+ n] require n % 2 == 0
         ENTRY f { %x = f32[`@c.n`,4] parameter(0); ROOT %y = f32[`@c.n`,4] copy(%x); } }",
    );
    assert_eq!(kinds, [range(2, 3)]);
    assert_eq!(isa.instrs[2].requires.len(), 1);
}

#[test]
fn bounds_stated_as_requirements_become_ranges() {
    let (isa, kinds) = completed(
        "instr f alpha(n) beta(a, b) { in v[a :+ n] out v[b :+ n] require 2 <= n < 7 and n != 5 require 9 >= n
         ENTRY f { %x = f32[`@c.n`,4] parameter(0); ROOT %y = f32[`@c.n`,4] copy(%x); } }",
    );
    assert_eq!(kinds, [range(2, 6)]);
    assert_eq!(isa.instrs[2].requires.len(), 1);
}

#[test]
fn a_value_that_fits_for_some_sizes_only_is_kept_to_them() {
    let (_, kinds) = completed(
        "instr f alpha(n) beta(a, b) { in v[a :+ n] out v[b :+ n]
         ENTRY f { %x = f32[`@c.n`,4] parameter(0); ROOT %y = f32[4,`@c.n`] transpose(%x), dimensions={1,0}; } }",
    );
    assert_eq!(kinds, [range(4, 4)]);
}

#[test]
fn constants_take_what_all_their_types_hold() {
    let (_, kinds) = completed(
        "instr f alpha(k) beta(a) { out w[a :+ 1, 0 :+ 6] ENTRY f { %c = s16[] constant(`@c.k`); %d = u8[] constant(`@c.k`);
         %e = s8[] convert(%c); %g = s8[] convert(%d); %h = s8[] add(%e, %g);
         ROOT %y = s8[1,6] broadcast(%h), dimensions={}; } }",
    );
    assert_eq!(kinds, [range(0, 255)]);
}

#[test]
fn what_contradicts_itself_is_told() {
    let text = format!(
        "{HEAD}instr f alpha(n) beta(a, b) {{ in v[a :+ n] out v[b :+ n] require n > 8
         ENTRY f {{ %x = f32[`@c.n`,4] parameter(0); ROOT %y = f32[`@c.n`,4] copy(%x); }} }}"
    );
    let error = Isa::parse_and_complete(&text, "t").unwrap_err();
    assert!(error.to_string().contains("no values of the attributes fulfil the requirements"), "{error}");
    assert!(Isa::parse_and_complete("isa t hbm", "t").is_err());
}
