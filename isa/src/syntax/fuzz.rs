//! No text makes the front end panic, and what parses prints to itself.

use super::{format::format as put_right, lower, parser};
use crate::AttrVal;
use crate::encoding::{Dialect, Encoding, Field, FieldValue, Insn, Piece, Template};
use crate::expr::{Cond, Env, Expr, Relation};
use crate::{Isa, load_target};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

/// A cut of a valid description replaced by something.
#[derive(Clone, Debug)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, String),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        ":+",
        "..",
        "`",
        "\"",
        "//",
        "#",
        "%",
        "@",
        "@c.",
        "-",
        "+",
        "*",
        "/",
        "<<",
        "==",
        "and",
        "or",
        "not",
        "in",
        "by",
        "9223372036854775808",
        "-9223372036854775808",
        "0",
        "1",
        "65",
        "0x80",
        "1e999",
        "0.5",
        "ROOT",
        "return",
        "constant(",
        "parameter(7)",
        "f32",
        "s4[1]",
        "pred",
        "c64",
        "min(",
        "ceildiv(",
        "instr",
        "buffer",
        "hbm",
        "alpha(",
        "out",
        "require",
        "update r = 1",
        "register r = 0",
        "{1, 2}",
        "nospill",
        "ordered",
        "if 1 < 2 {",
        "} else {",
        "repeat i in 2 {",
        "init -0.5",
        "dimensions={9}",
        "slice={[0:1]}",
        "encode call \"f({a:segment}, {a / 2:offset}, {n:r})\"",
        "encode riscv insn(opcode 1, funct3 2, funct7 3) { rs1 { a at 0 width 8 signed } }",
        "epilogue",
        "prologue",
        "loop l { begin \"for {iv}:\" }",
        "loop host",
        ":segment",
        "é",
        "\n",
    ]);
    prop_oneof![
        (any::<usize>(), 0..40usize).prop_map(|(at, len)| Edit::Delete(at, len)),
        (any::<usize>(), words.prop_map(str::to_owned)).prop_map(|(at, text)| Edit::Insert(at, text)),
        (any::<usize>(), 0..80usize, any::<usize>()).prop_map(|(from, len, to)| Edit::Copy(from, len, to)),
    ]
}

/// Short targets, and the examples of the language reference, which use everything.
fn sources() -> Vec<&'static str> {
    let targets = crate::targets().iter().map(|(_, text)| *text).filter(|text| text.len() < 20_000);
    targets.chain(super::reference::blocks("taidl")).collect()
}

fn border(text: &str, at: usize) -> usize {
    let mut at = at % (text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn apply(text: &mut String, edit: &Edit) {
    match edit {
        Edit::Delete(at, len) => {
            let start = border(text, *at);
            let end = border(text, (start + len).min(text.len()));
            text.replace_range(start..end.max(start), "");
        }
        Edit::Insert(at, piece) => text.insert_str(border(text, *at), piece),
        Edit::Copy(from, len, to) => {
            let start = border(text, *from);
            let end = border(text, (start + len).min(text.len())).max(start);
            let piece = text[start..end].to_owned();
            text.insert_str(border(text, *to), &piece);
        }
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let parsed = Isa::parse(text, "fuzz");
    if let Ok(formatted) = put_right(text, "fuzz") {
        let same = Isa::parse(&formatted, "formatted").ok();
        prop_assert_eq!(same.as_ref(), parsed.as_ref().ok(), "{}", formatted);
        let again = put_right(&formatted, "formatted");
        prop_assert_eq!(again.ok(), Some(formatted));
    }
    if let Ok((completed, _)) = Isa::parse_and_complete(text, "fuzz") {
        prop_assert!(Isa::parse(&completed.print(), "completed").is_ok());
    }
    match parsed {
        Ok(isa) => {
            let printed = isa.print();
            let again = Isa::parse(&printed, "printed");
            prop_assert_eq!(again.as_ref().ok(), Some(&isa), "{}", printed);
        }
        Err(diagnostics) => prop_assert!(!diagnostics.to_string().is_empty()),
    }
    Ok(())
}

type Operator = fn(Box<Expr>, Box<Expr>) -> Expr;

/// Expressions over the attributes of h_qkv's load_rm and three registers.
fn expr() -> impl Strategy<Value = Expr> {
    let number = prop_oneof![Just(i64::MIN), Just(i64::MAX), -9..9i64];
    let leaf = prop_oneof![
        number.prop_map(Expr::Int),
        Just(Expr::Alpha(0)),
        (0..2u16).prop_map(Expr::Beta),
        (0..3u16).prop_map(Expr::Register),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let makers: Vec<Operator> = vec![
            Expr::Add,
            Expr::Sub,
            Expr::Mul,
            Expr::Div,
            Expr::Mod,
            Expr::CeilDiv,
            Expr::Shl,
            Expr::Shr,
            Expr::Min,
            Expr::Max,
        ];
        (prop::sample::select(makers), inner.clone(), inner).prop_map(|(make, a, b)| make(a.into(), b.into()))
    })
}

fn cond() -> impl Strategy<Value = Cond> {
    let relations = vec![Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge, Relation::Eq, Relation::Ne];
    let leaf = prop_oneof![
        (prop::sample::select(relations), expr(), expr()).prop_map(|(r, a, b)| Cond::Cmp(r, a, b)),
        (expr(), vec(-9..9i64, 0..3)).prop_map(|(a, set)| Cond::In(a, set)),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Cond::And(a.into(), b.into())),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Cond::Or(a.into(), b.into())),
            inner.prop_map(|a| Cond::Not(a.into())),
        ]
    })
}

/// Encodings of every kind with these values in them.
fn encodings(values: &[Expr], signed: bool) -> Vec<Encoding> {
    let field = |(k, e): (usize, &Expr)| {
        let value = FieldValue::Int(e.clone());
        Field { value, at: 20 * k as u8, width: 20, signed }
    };
    let fields: Vec<Field> = values.iter().enumerate().map(field).collect();
    let bits = Field { value: FieldValue::F32(0xc020_0001), at: 32, width: 32, signed: false };
    let insn = Insn { opcode: 0x7b, funct3: 7, funct7: 1, rs1: fields, rs2: vec![bits] };
    let text = |dialect| {
        let special: fn(Expr) -> Piece = match dialect {
            Dialect::Call if values.len() > 1 => Piece::Segment,
            Dialect::Call => Piece::Offset,
            Dialect::Riscv | Dialect::X86 => Piece::InRegister,
        };
        let holes = values.iter().flat_map(|e| {
            let hole = if signed { special(e.clone()) } else { Piece::Value(e.clone()) };
            [Piece::Text("%zmm{k1} \"$\" ".to_owned()), hole]
        });
        Template(holes.chain([Piece::Text("\n}".to_owned())]).collect())
    };
    let clobbers = if signed { vec!["memory".to_owned()] } else { Vec::new() };
    let kind = |dialect| Encoding::Text { dialect, text: text(dialect), clobbers: clobbers.clone() };
    vec![Encoding::Insn(insn), kind(Dialect::X86), kind(Dialect::Riscv), kind(Dialect::Call)]
}

/// A step of a random block: values are `v0` .. `v3`, known from the start.
#[derive(Clone, Debug)]
enum RandomStep {
    Assign(usize, usize),
    If(i64, Vec<RandomStep>, Vec<RandomStep>),
    Repeat(u8, Vec<RandomStep>),
}

fn steps() -> impl Strategy<Value = Vec<RandomStep>> {
    let leaf = (0..4usize, 0..4usize).prop_map(|(to, from)| RandomStep::Assign(to, from));
    let step = leaf.prop_recursive(3, 24, 3, |inner| {
        let block = || vec(inner.clone(), 0..3);
        prop_oneof![
            (0..4i64, block(), block()).prop_map(|(n, a, b)| RandomStep::If(n, a, b)),
            (0..3u8, block()).prop_map(|(n, body)| RandomStep::Repeat(n, body)),
        ]
    });
    vec(step, 0..4)
}

/// The block's text; `values` are what the four names hold when `n` is 2, as the text says.
fn write(steps: &[RandomStep], depth: usize, values: &mut [i32; 4], live: bool, out: &mut String) {
    let mut assigned = Vec::new();
    for step in steps {
        match step {
            RandomStep::Assign(to, from) if !assigned.contains(to) && depth > 0 => {
                assigned.push(*to);
                out.push_str(&format!("v{to} = s32[1] add(v{from}, one)\n"));
                if live {
                    values[*to] = values[*from] + 1;
                }
            }
            RandomStep::Assign(..) => {}
            RandomStep::If(bound, then, otherwise) => {
                out.push_str(&format!("if n > {bound} {{\n"));
                write(then, depth + 1, values, live && 2 > *bound, out);
                out.push_str("} else {\n");
                write(otherwise, depth + 1, values, live && 2 <= *bound, out);
                out.push_str("}\n");
            }
            RandomStep::Repeat(times, body) => {
                out.push_str(&format!("repeat i{depth}_ in {times} {{\n"));
                write(body, depth + 1, values, live && *times > 0, out);
                for _ in 1..*times {
                    write(body, depth + 1, values, live, &mut String::new());
                }
                out.push_str("}\n");
            }
        }
    }
}

/// The shipped descriptions whose devices are written to.
static WITH_ENCODINGS: LazyLock<Vec<Isa>> = LazyLock::new(|| {
    let names = ["amx", "gemmini", "gemmini_plus", "trainium", "x86"];
    names.iter().map(|name| load_target(name).expect("ships with the project")).collect()
});

/// A few unless PROPTEST_CASES says how many: a long run is `PROPTEST_CASES=1000000 cargo test -p act-isa fuzz`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_descriptions_are_judged(which in any::<prop::sample::Index>(), edits in vec(edit(), 1..4)) {
        let mut text = which.get(&sources()).to_string();
        edits.iter().for_each(|edit| apply(&mut text, edit));
        check(&text)?;
    }

    #[test]
    fn any_bytes_are_judged(bytes in vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_text_is_judged(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn any_words_are_judged(edits in vec(edit(), 0..60)) {
        let mut text = String::new();
        edits.iter().for_each(|edit| apply(&mut text, edit));
        check(&text)?;
    }

    /// Loop programs with any numbers in them are written for the device, or the reason is told.
    #[test]
    fn any_program_is_written_or_refused(
        target in any::<prop::sample::Index>(),
        which in any::<prop::sample::Index>(),
        numbers in vec(prop_oneof![-40..40i64, any::<i64>()], 1..24),
        trips in (0..4u64, prop_oneof![0..4u64, any::<u64>()]),
    ) {
        let isa = target.get(WITH_ENCODINGS.as_slice());
        let op = crate::InstrId(which.index(isa.instrs.len()) as u16);
        let instr = isa.instr(op);
        let mut numbers = numbers.iter().copied().cycle();
        let mut number = || numbers.next().unwrap_or_default();
        let alpha = instr.alpha.iter().map(|a| match a.kind {
            crate::AttrKind::Int { .. } => AttrVal::Int(number()),
            crate::AttrKind::F32 => AttrVal::F32(number() as u32),
        });
        let alpha = alpha.collect();
        let [outer, inner] = [crate::LoopId(0), crate::LoopId(1)];
        let beta = (0..instr.beta.len()).map(|k| {
            let mut affine = crate::Affine::constant(number());
            let _ = affine.add_term(outer, number());
            let _ = affine.add_term(inner, number() % 3);
            match instr.is_address(k) {
                true => crate::BetaVal::Hbm(crate::Space::Operand(0), affine),
                false => crate::BetaVal::Int(affine),
            }
        });
        let beta = beta.collect();
        let leaf = crate::Program::Instr { op, alpha, beta };
        let in_loop = |iv, trip, body| crate::Program::For { iv, trip, parallel: false, body: Box::new(body) };
        let program = crate::LoopProgram {
            body: in_loop(outer, trips.0, in_loop(inner, trips.1.min(64), leaf)),
            operands: vec![64],
            results: Vec::new(),
            scratch_bytes: 0,
            consts: Vec::new(),
        };
        match crate::print_device(isa, &program) {
            Ok(text) => prop_assert!(text.ends_with('\n')),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn control_flow_keeps_its_shape_and_its_meaning(steps in steps()) {
        let mut values = [10, 20, 30, 40];
        let mut body = String::new();
        write(&steps, 0, &mut values, true, &mut body);
        let start: String = (0..4).map(|k| format!("v{k} = s32[1] constant(n + {})\n", 10 * k + 8)).collect();
        let text = format!(
            "isa t hbm d0: 64 buffer b: s32[4 | ]
             instr x alpha(n: 0..4) beta(at) {{ out b[at :+ 4] computation {{
               one = s32[1] constant(1)
               {start}{body}return y }} }}"
        );
        let text = text.replace("return y", "y = s32[4] concatenate(v0, v1, v2, v3), dimensions={0} return y");
        let isa = Isa::parse(&text, "random").map_err(|e| TestCaseError::fail(e.to_string()))?;
        let again = Isa::parse(&isa.print(), "printed").ok();
        prop_assert_eq!(again.as_ref(), Some(&isa), "{}", isa.print());
        let graph = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(2)]).expect("n is legal");
        let results = act_hlo::eval(&graph, &[]).expect("integers add");
        let expected: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        prop_assert_eq!(results[0].bytes(), expected.as_slice(), "{}", text);
        // Of the paths that a compiler is offered, one is taken, and it means the same.
        if let Ok(variants) = isa.variants(crate::InstrId(0)) {
            let env = Env { alpha: &[Some(2)], ..Env::default() };
            let taken = variants.iter().filter(|v| v.conditions.iter().all(|c| c.eval(env) == Ok(true)));
            let taken: Vec<_> = taken.collect();
            prop_assert_eq!(taken.len(), 1);
            let mut flat = isa.clone();
            flat.instrs[0].structured = None;
            flat.instrs[0].computation = taken[0].computation.clone();
            let graph = flat.instrs[0].instantiate(&flat, &[AttrVal::Int(2)]).expect("n is legal");
            let results = act_hlo::eval(&graph, &[]).expect("integers add");
            prop_assert_eq!(results[0].bytes(), expected.as_slice(), "{}", text);
        }
    }

    #[test]
    fn expressions_keep_their_shape(
        cost in expr(),
        requires in vec(cond(), 0..3),
        updates in vec(expr(), 0..3),
        set in vec(-9..9i64, 0..4),
        buffer in (any::<bool>(), prop::option::of(any::<i8>()), 1..3u64),
    ) {
        let mut isa = load_target("h_qkv").expect("ships with the project");
        isa.registers = (0..3).map(|k| (format!("r{k}"), k - 1)).collect();
        let (nospill, init, align) = buffer;
        let zero = crate::constant::int_scalar(isa.buffers[0].elem, i64::from(init.unwrap_or(0)));
        isa.buffers[0].init = init.and_then(|_| zero.ok());
        isa.buffers[0].nospill = nospill;
        isa.buffers[0].align = vec![align];
        (isa.hbm.align, isa.hbm.ordered) = (align, nospill);
        isa.instrs[0].encodings = encodings(&updates, nospill);
        isa.instrs[0].updates = (0..).zip(updates).collect();
        let plain = encodings(&[Expr::Int(align as i64)], nospill);
        isa.device.prologue = plain[..1].to_vec();
        isa.device.epilogue = plain[1..3].to_vec();
        isa.device.fence = plain[..2].to_vec();
        let mut requires = requires;
        if let Some((&min, &max)) = set.iter().min().zip(set.iter().max()) {
            isa.instrs[0].alpha[0].kind = crate::AttrKind::Int { min, max };
            requires.insert(0, Cond::In(Expr::Alpha(0), set));
        }
        isa.instrs[0].cost = cost;
        isa.instrs[0].requires = requires;
        let text = isa.print();
        // Without the checks: most random requirements have no solution.
        let parsed = parser::parse(&text);
        prop_assert!(parsed.faults.is_empty(), "{}", text);
        let lowered = lower::lower(&parsed.items);
        prop_assert_eq!(lowered.diagnostics, vec![], "{}", text);
        prop_assert_eq!(lowered.isa, isa, "{}", text);
    }
}
