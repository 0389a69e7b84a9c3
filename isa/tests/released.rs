//! Semantics blocks as the released TAIDL spells them, against the same in HLO's spelling and against numbers worked
//! out by hand.

use act_hlo::{ElemType, Literal, Shape, eval};
use act_isa::syntax::check_block;
use act_isa::{AttrVal, Isa};

/// A description of one instruction over `acc: s32[64 | 4]` with attributes n, k and addresses i, o.
fn description(slices: &str, block: &str) -> Isa {
    let text = format!(
        "isa t\nhbm d0: 1 MiB\nbuffer acc: s32[64 | 4]\nregister mode = 2\n\
         instr fill beta(o) {{ out acc[o :+ 64] computation {{ ROOT x = s32[64,4] constant(0) }} }}\n\
         instr f alpha(n: 1..8) beta(i, o) {{\n{slices}\n{block}\n}}\n"
    );
    Isa::parse(&text, "t.taidl").unwrap_or_else(|e| panic!("{e}"))
}

const SLICES: &str = "in acc[`@a.i` :+ `@c.n`] out acc[`@a.o` :+ `@c.n`]";

/// Both blocks compute the same on `0, 1, 2, ..` (n = 2), and the numbers are these.
fn equal(released: &str, hlo: &str, expected: [i32; 8]) {
    for block in [released, hlo] {
        let isa = description(SLICES, block);
        let instr = isa.instr(isa.instr_named("f").unwrap());
        let graph = instr.instantiate(&isa, &[AttrVal::Int(2)]).unwrap_or_else(|e| panic!("{block}\n{e}"));
        let input: Vec<u8> = (0..8i32).flat_map(i32::to_le_bytes).collect();
        let input = Literal::from_bytes(Shape::new(ElemType::S32, vec![2, 4]), input).unwrap();
        let result = eval(&graph, &[input]).unwrap();
        let expected: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(result[0].bytes(), expected, "{block}");
    }
    assert!(check_block(released, "block").is_ok());
}

#[test]
fn a_type_of_one_element_is_a_scalar() {
    equal(
        "ENTRY f {
            %In1 = s32[`@c.n`,4] parameter(0);
            %c = s32[1] constant(`-3`);
            %cs = s32[`@c.n`,4] broadcast(%c), dimensions={};
            ROOT %Out0 = s32[`@c.n`,4] multiply(%In1, %cs);
        }",
        "computation {
            x = s32[n,4] parameter(0)
            c = s32[] constant(-3)
            cs = s32[n,4] broadcast(c), dimensions={}
            ROOT y = s32[n,4] multiply(x, cs)
        }",
        [0, -3, -6, -9, -12, -15, -18, -21],
    );
}

/// Nothing of the stand-in stays behind: the two spellings are one model.
#[test]
fn a_scalar_constant_is_the_same_in_both_spellings() {
    let model = |one: &str, name: &str| {
        let block = format!(
            "ENTRY f {{ x = s32[n,4] parameter(0) {name} = s32{one} constant(7)
             cs = s32[n,4] broadcast({name}), dimensions={{}} ROOT y = s32[n,4] maximum(x, cs) }}"
        );
        description(SLICES, &block)
    };
    assert_eq!(model("[1]", "c"), model("[]", "c.scalar"));
}

#[test]
fn an_elementwise_operator_spreads_one_element() {
    equal(
        "ENTRY f {
            %x = s32[`@c.n`,4] parameter(0);
            %two = s32[1] constant(2);
            %five = s32[1] constant(5);
            %a = s32[`@c.n`,4] maximum(%two, %x)
            ROOT %y = s32[`@c.n`,4] clamp(%two, %a, %five);
        }",
        "computation {
            x = s32[n,4] parameter(0)  lo = s32[] constant(2)  hi = s32[] constant(5)
            ROOT y = s32[n,4] clamp(lo, x, hi)
        }",
        [2, 2, 2, 3, 4, 5, 5, 5],
    );
}

#[test]
fn a_computed_value_of_one_element_is_a_scalar_too() {
    equal(
        "ENTRY f {
            %x = s32[`@c.n`,4] parameter(0);
            %flat = s32[`@c.n * 4`] reshape(%x);
            %last = s32[1] slice(%flat), slice={[`@c.n * 4 - 1`:`@c.n * 4`:1]};
            ROOT %y = s32[`@c.n`,4] add(%x, %last);
        }",
        "computation {
            x = s32[n,4] parameter(0)
            flat = s32[n * 4] reshape(x)
            last = s32[1] slice(flat), slice={[n * 4 - 1 : n * 4]}
            scalar = s32[] reshape(last)
            all = s32[n,4] broadcast(scalar), dimensions={}
            ROOT y = s32[n,4] add(x, all)
        }",
        [7, 8, 9, 10, 11, 12, 13, 14],
    );
}

#[test]
fn selection_by_a_comparison() {
    equal(
        "ENTRY f {
            %x = s32[`@c.n`,4] parameter(0);
            %four = s32[1] constant(4);
            %big = s32[`@c.n`,4] constant(100);
            %s = s32[`@c.n`,4] select_lt(%x, %four, %x, %big);
            ROOT %y = s32[`@c.n`,4] select_eq_var(%x, %four, %four, %s);
        }",
        "computation {
            x = s32[n,4] parameter(0)
            four = s32[n,4] constant(4)
            big = s32[n,4] constant(100)
            less = pred[n,4] compare(x, four), direction=LT
            s = s32[n,4] select(less, x, big)
            same = pred[n,4] compare(x, four), direction=EQ
            ROOT y = s32[n,4] select(same, four, s)
        }",
        [0, 1, 2, 3, 4, 100, 100, 100],
    );
}

#[test]
fn reductions_by_name_and_by_combiner() {
    for sum in [
        "reduce_add(%x), dimensions={1}",
        "reduce(%x), dimensions={1}, to_apply=%add, init=0",
        "reduce(%x), dimensions={1}, to_apply=%add_s32",
        "reduce(%x, %zero), dimensions={1}, to_apply=add",
    ] {
        equal(
            &format!(
                "ENTRY f {{
                    %x = s32[`@c.n`,4] parameter(0);
                    %zero = s32[1] constant(0);
                    %r = s32[`@c.n`] {sum};
                    ROOT %y = s32[`@c.n`,4] broadcast(%r), dimensions={{0}};
                }}"
            ),
            "computation {
                x = s32[n,4] parameter(0)  zero = s32[] constant(0)
                r = s32[n] reduce(x, zero), dimensions={1}, to_apply=add
                ROOT y = s32[n,4] broadcast(r), dimensions={0}
            }",
            [6, 6, 6, 6, 22, 22, 22, 22],
        );
    }
    // An initial value counts.
    equal(
        "ENTRY f { %x = s32[`@c.n`,4] parameter(0); %r = s32[`@c.n`] reduce(%x), dimensions={1}, to_apply=%max, init=5;
         ROOT %y = s32[`@c.n`,4] broadcast(%r), dimensions={0}; }",
        "ENTRY f { x = s32[n,4] parameter(0) five = s32[] constant(5)
         r = s32[n] reduce(x, five), dimensions={1}, to_apply=maximum
         ROOT y = s32[n,4] broadcast(r), dimensions={0} }",
        [5, 5, 5, 5, 7, 7, 7, 7],
    );
}

#[test]
fn python_expressions_mean_what_python_says() {
    // -7 // 2 = -4, -7 % 3 = 2, and a chain of comparisons holds pairwise.
    equal(
        "ENTRY f {
            %x = s32[`@c.n`,4] parameter(0);
            %c = s32[1] constant(`(0 - @c.n - 5) // 2 * 100 + (-7) % 3 * 10 + @s.mode`);
            ROOT %y = s32[`@c.n`,4] add(%x, %c);
        }",
        "ENTRY f { x = s32[n,4] parameter(0) c = s32[n,4] constant(-378) ROOT y = s32[n,4] add(x, c) }",
        [-378, -377, -376, -375, -374, -373, -372, -371],
    );
    let slices = format!(
        "{SLICES} require `1 <= @c.n < 4 and not @c.n == 3` require `@c.n in (1, 2, 4)` require `@c.n not in [1]`"
    );
    let isa = description(&slices, "ENTRY f { x = s32[n,4] parameter(0) ROOT y = s32[n,4] copy(x) }");
    let f = isa.instr(isa.instr_named("f").unwrap());
    let legal: Vec<i64> = (1..=8).filter(|&n| f.instantiate(&isa, &[AttrVal::Int(n)]).is_ok()).collect();
    assert_eq!(legal, [2]);
}

#[test]
fn constants_of_every_kind() {
    let text = "isa t\nhbm d0: 1 MiB\nbuffer v: f32[8 | 4]\ninstr f beta(o) { out v[o :+ 1] ENTRY f {
        %a = f32[1] constant(`0.5`);  %b = f32[1] constant(`-inf`);  %c = f32[4] constant({1, -2.5, 3e2, nan});
        %d = f32[1,4] constant(0x7f800000);  %e = pred[1] constant(true);  %g = s8[2,2] constant({{-128, 1}, {2, 127}});
        %h = bf16[1] constant(1.);  %i = f32[1] constant(.25);  %k = u8[1] constant(255);
        ROOT %y = f32[1,4] reshape(%c); } }";
    let isa = Isa::parse(text, "t.taidl").unwrap_or_else(|e| panic!("{e}"));
    let again = Isa::parse(&isa.print(), "printed").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(isa, again);
    let graph = isa.instrs[0].instantiate(&isa, &[]).unwrap();
    let values: Vec<f32> = eval(&graph, &[]).unwrap()[0]
        .bytes()
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(values[..3], [1.0, -2.5, 300.0]);
    assert!(values[3].is_nan());
}

#[test]
fn instructions_and_values_may_be_called_like_words_of_the_language() {
    for name in ["exp", "add", "slice", "s8", "ROOT", "ENTRY", "copy", "instr", "buffer", "out"] {
        let text = format!(
            "isa t hbm d0: 1 MiB buffer v: f32[8 | 4] instr {name} beta(o) {{ out v[o :+ 1] ENTRY {name} {{
             %{name} = f32[1,4] constant(2); ROOT %y = f32[1,4] exp(%{name}); }} }}"
        );
        let isa = Isa::parse(&text, "t.taidl").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(isa.instrs[0].name, name);
    }
}

#[test]
fn a_block_with_faults_is_refused_with_all_of_them() {
    let error =
        check_block("ENTRY f {\n %a = q8[1] constant(0);\n ROOT %b = s8[1 copy(%a);\n}", "f").unwrap_err();
    assert_eq!(error.list.len(), 2, "{error}");
    assert!(check_block("ENTRY f { }, more", "f").is_err());
}
