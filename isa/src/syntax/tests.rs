//! Descriptions that parse, descriptions that do not and what is said about them.

use super::*;

const GOOD: &str = r#"
// A small accelerator.
isa small
hbm d0: 1 MB align 2 ordered
const DIM = 16
buffer sp: s8[128, DIM | ] align(2, 1)
buffer acc: s32[64 | 16]
register mode = -3
units load, execute
queue load { latency 30 depth 4 issue 2 }
queue execute { yields; serial; start 3 }
banks sp(4, 1) { port 1 }
banks acc(2) { }

instr load alpha(rows: 1..DIM, stride: 0..) beta(dram, row: 0..127) {
  in  d0[dram + 2; rows by stride, DIM]
  out sp[row :+ rows, 0 :+ DIM]
  require row % 2 == 0 and (rows in {1, 2, 16} or not rows > 4)
  require 0 <= row + rows <= 128
  cost ceildiv(rows, 2) * (3 + max(rows, 4)) - 1
  unit load
  asm "ld {dram}, {row}," "   {rows} {stride}"
  computation {
    x = u8[rows, 16] parameter(0)
    ROOT %y = s8[`@c.rows`, 16] bitcast_convert(%x);
  }
}
instr add alpha(scale: f32) beta(a, b) {
  in acc[a :+ 4]
  in acc[b :+ 4]
  out acc[a :+ 4]
  out acc[b :+ 4]
  ENTRY add {
    add = s32[4,16] parameter(0)
    b = s32[4,16] parameter(1)
    k = f32[4,16] constant(scale)
    c = s32[2,2] constant({{-1, 2}, {3, 0x7fffffff}})
    h = bf16[] constant(-0.5)
    n = f32[] constant(0x7fc00001)
    z = f32[2] constant({-0.0, inf})
    p = pred[] constant(true)
    q = pred[4,16] compare(add, b), direction=LT
    f = f32[4,16] convert(add)
    m = f32[4,16] multiply(f, k)
    t = f32[16,4] transpose(m), dimensions={1, 0}
    r = f32[16] reduce_max(t), dimensions={1}
    w = f32[16,2] slice(t), slice={[0:16], [0:4:2]}
    i = s32[4,16] iota(), iota_dimension=1
    d = s32[4,4] dot(add, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    s = s32[4,16] select(q, add, i)
    return s, add
  }
}
instr store beta(row, dram) {
  in sp[row :+ 1, 0 :+ 16]
  out d0[dram :+ 16]
  computation { x = s8[1,16] parameter(0)  y = u8[1,16] bitcast-convert(x)  ROOT z = u8[16] reshape(y) }
}
"#;

fn errors(text: &str) -> String {
    Isa::parse(text, "t.taidl").expect_err("the description has a fault").to_string()
}

/// The good description with one piece of text replaced.
fn fault(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    errors(&GOOD.replacen(from, to, 1))
}

#[test]
fn a_description_becomes_its_model() {
    let isa = Isa::parse(GOOD, "t.taidl").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(isa.hbm, crate::Hbm { name: "d0".into(), size: 1 << 20, align: 2, ordered: true });
    // The options of main memory stand in any order, and neither has to.
    let other = |text: &str| Isa::parse(&GOOD.replacen("align 2 ordered", text, 1), "t.taidl").unwrap();
    assert_eq!(other("ordered align 2"), isa);
    assert!(!other("align 2").hbm.ordered);
    assert_ne!(other("align 2").digest(), isa.digest());
    assert_eq!(
        (isa.buffers[0].access.as_slice(), isa.buffers[0].align.as_slice()),
        (&[128, 16][..], &[2, 1][..])
    );
    assert_eq!(isa.registers, [("mode".to_owned(), -3)]);
    let load = &isa.instrs[0];
    assert_eq!(load.requires.len(), 2);
    assert_eq!(load.asm, "ld {dram}, {row},\n   {rows} {stride}");
    assert_eq!(isa.instrs[1].updates_in_place(0), Some(0));
    assert_eq!(isa.instrs[1].computation.roots.len(), 2);
}

#[test]
fn printing_and_parsing_is_the_identity() {
    let isa = Isa::parse(GOOD, "t.taidl").unwrap();
    let text = isa.print();
    let again = Isa::parse(&text, "printed").unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(isa, again);
    assert_eq!(text, again.print());
    assert_eq!(isa.digest(), again.digest());
}

#[test]
fn faults_are_shown_where_they_are() {
    let cases = [
        ("buffer acc: s32", "bufer acc: s32", "unknown item `bufer`; the nearest known one is `buffer`"),
        ("s32[64 | 16]", "q32[64 | 16]", "unknown element type `q32`; the nearest known one is `f32`"),
        ("out sp[row", "out spad[row", "unknown buffer `spad`; the nearest known one is `sp`"),
        ("(3 + max(rows", "(3 + max(row5", "unknown attribute `row5`; the nearest known one is `row`"),
        (
            "bitcast_convert",
            "bitcast_convrt",
            "unknown operator `bitcast-convrt`; the nearest known one is `bitcast-convert`",
        ),
        ("unit load", "unit lod", "unknown unit `lod`; the nearest known one is `load`"),
        ("multiply(f, k)", "multiply(f, kk)", "unknown value `kk`; the nearest known one is `k`"),
        ("instr store", "instr add", "instruction `add` is declared twice"),
        ("stride: 0..) beta(dram", "stride: 0..) beta(rows, dram", "name `rows` is declared twice"),
        ("queue load", "queue laod", "unknown unit `laod`; the nearest known one is `load`"),
        ("queue execute", "queue load", "queue `load` is declared twice"),
        ("latency 30", "latency -30", "expected a number in 0..4294967295, found -30"),
        ("depth 4", "depth 0", "the depth must be at least 1"),
        ("depth 4", "dept 4", "unknown part of a queue `dept`; the nearest known one is `depth`"),
        ("serial;", "serial; serial", "queue `execute` has a second `serial`"),
        ("banks sp", "banks ap", "unknown buffer `ap`; the nearest known one is `sp`"),
        ("banks acc(2)", "banks sp(4, 1)", "`banks` of buffer `sp` is declared twice"),
        ("banks acc(2)", "banks acc(2, 1)", "one per access dimension of `acc`: expected 1, got 2"),
        ("banks acc(2)", "banks acc(3)", "expected a divisor of the dimension, which is 64, found 3"),
        ("hbm d0: 1 MB align 2 ordered", "", "the description has no `hbm NAME: SIZE`"),
        ("align 2 ordered", "ordered align 2 ordered", "main memory `d0` has a second `ordered`"),
        ("align 2 ordered", "align 2 align 2", "main memory `d0` has a second alignment"),
        ("row % 2 == 0", "row % 2", "expected a condition, found a number"),
        ("cost ceildiv", "cost ceil", "unknown function `ceil`"),
        ("{{-1, 2}, {3, 0x7fffffff}}", "{-1, 2, 3}", "elements of the constant: expected 4, got 3"),
        ("constant(-0.5)", "constant(257)", "257 is no bf16"),
        ("0x7fffffff", "0x80000000", "2147483648 is no s32"),
        ("direction=LT", "direction=LESS", "`direction` is one of EQ"),
        ("dimensions={1, 0}", "dims={1, 0}", "unknown attribute of the operator `dims`"),
        (
            "return s, add",
            "return s",
            "roots of the computation (one per `out` slice; mark them ROOT): expected 2, got 1",
        ),
        ("beta(row, dram)", "beta(row, dram, spare)", "addressing attribute `spare` is used nowhere"),
        ("beta(row, dram)", "alpha(k: 1..4) beta(row, dram)", "attribute `k` is used nowhere"),
        ("cost ceildiv(rows, 2)", "cost mode", "the cost is"),
        ("sp[row :+ 1, 0 :+ 16]", "sp[row :+ 1]", "access dimensions of `sp`: expected 2, got 1"),
        ("sp[row :+ 1, 0 :+ 16]", "sp[row :+ 1, 16 :+ 16]", "expected a start in 0..15, found 16"),
        (
            "d0[dram + 2; rows by",
            "d0[7; rows by",
            "the address must be one addressing attribute plus an offset",
        ),
        ("out d0[dram :+ 16]", "out d0[row :+ 16]", "`row` is used both as an address of main memory"),
        ("rows: 1..DIM", "rows: 1..0", "the range 1..0 is empty"),
        ("unit load\n", "unit load unit load\n", "has a second unit"),
        ("rows <= 128", "rows <= 128 )", "expected one of in, out"),
    ];
    let mut wrong = Vec::new();
    for (from, to, message) in cases {
        let shown = if to == "unit load unit load\n" { fault("unit load\n", to) } else { fault(from, to) };
        if !shown.contains(message) || !shown.contains("--> t.taidl:") {
            wrong.push(format!("{to}: {message}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_type_fault_names_the_attribute_values() {
    // [n,64] is declared where the transpose gives [64,n]: right for n = 64 only.
    let text = "isa t\nhbm d0: 1 MiB\nbuffer d1: bf16[128 | 64]\n\
                instr load_cm alpha(n: 1..128) beta(a, b) {\n  in d0[a :+ 128 * n]\n  out d1[b :+ n]\n\
                computation {\n x = u8[n * 128] parameter(0)\n r = u8[n, 64, 2] reshape(x)\n\
                c = bf16[n, 64] bitcast-convert(r)\n ROOT y = bf16[n, 64] transpose(c), dimensions={1, 0}\n}\n}\n";
    let shown = errors(text);
    assert!(shown.contains("for n = 1:"), "{shown}");
    assert!(shown.contains("11 |"), "{shown}");
    let fixed = text.replace("n: 1..128", "n: 64..64");
    assert!(Isa::parse(&fixed, "t").is_ok());
    let required = text.replace("out d1", "require n == 64\n out d1");
    assert!(Isa::parse(&required, "t").is_ok());
}

#[test]
fn a_slice_longer_than_its_buffer_is_found() {
    let shown = fault("rows: 1..DIM", "rows: 1..200").replace("require row", "");
    assert!(!shown.is_empty());
    let text = GOOD.replacen("sp[row :+ 1, 0 :+ 16]\n  out", "sp[row :+ 1, 2 :+ 16]\n  out", 1);
    assert!(errors(&text).contains("2 :+ 16 lies outside 0..16 of buffer `sp`"));
}

#[test]
fn buffers_need_a_writer() {
    let text = GOOD.replacen("out sp[row :+ rows, 0 :+ DIM]", "out acc[row :+ 1]", 1);
    assert!(errors(&text).contains("error"));
    let text = format!("{GOOD}\nbuffer idle: s8[4 | ]\n");
    let (_, warnings) = Isa::parse_with_warnings(&text, "t.taidl").unwrap();
    assert!(warnings.to_string().contains("warning: no instruction uses buffer `idle`"));
    let text = format!(
        "{GOOD}\nbuffer ghost: s8[4 | 16]\ninstr get beta(g, d) {{ in ghost[g :+ 1] out d0[d :+ 16] computation {{\
         x = s8[1,16] parameter(0) y = u8[1,16] bitcast-convert(x) ROOT z = u8[16] reshape(y) }} }}"
    );
    assert!(errors(&text).contains("no instruction writes buffer `ghost`, but one reads it"));
}

#[test]
fn deep_nesting_is_refused_not_overrun() {
    for text in [
        format!("isa t hbm d0: {}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("isa t hbm d0: {}x", "-".repeat(5000)),
        format!("isa t hbm d0: 1{}", "+1".repeat(5000)),
        format!("isa t hbm d0: {}1", "not ".repeat(5000)),
        format!("isa t instr x {{ computation {{ a = f32[1] constant({}1", "{".repeat(5000)),
    ] {
        assert!(Isa::parse(&text, "t").is_err());
    }
}
