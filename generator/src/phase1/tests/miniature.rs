//! Small descriptions for witnesses, written from a list of the operators that they have: dense loads and stores, and one
//! instruction per operator on tensors of one rank in buffers without unit dimensions. Knows no rule.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Names of the sizes of a tensor, outermost first.
const SIZES: [&str; 4] = ["m", "n", "p", "q"];
/// Extent of every buffer dimension; tensors of a witness are smaller.
const EXTENT: u64 = 64;

/// An operator as a witness lists it: `f32 add`, `pred compare.LT.f32`, `f32 reduce.add.1`, `s32 dot.1.0.s8`,
/// `f32 transpose.1-0`, `f32 broadcast.0`, `f32 reverse.0`, `f32 splat.1.5`, each with `/rank` where it is not 2 (the
/// rank of the result, for a reduction of the operand). Then ` @x+w>acc` names the buffers of the operands and of the
/// result, which are one otherwise, and ` in 4..8` gives the least and the largest size. `s32 mac.1.0` is a dot that is
/// added to a third operand.
struct Listed<'a> {
    elem: &'a str,
    op: &'a str,
    attributes: Vec<&'a str>,
    rank: usize,
    /// Labels of the operands' buffers and of the result's.
    operands: Vec<&'a str>,
    result: &'a str,
    range: String,
}

/// A buffer's label, element type and rank.
type Buffers = BTreeSet<(String, String, usize)>;

/// Which unary and ternary operators there are; every other elementwise one has two operands.
const UNARY: &[&str] = &[
    "abs",
    "negate",
    "sign",
    "not",
    "ceil",
    "floor",
    "round-nearest-afz",
    "round-nearest-even",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "sqrt",
    "rsqrt",
    "cbrt",
    "sine",
    "cosine",
    "tan",
    "tanh",
    "erf",
    "is-finite",
    "count-leading-zeros",
    "popcnt",
    "copy",
];

/// The text of a description with these operators and, after them, `more`.
pub(super) fn description(operators: &str, more: &str) -> String {
    let listed: Vec<Listed<'_>> =
        operators.split(',').map(str::trim).filter(|l| !l.is_empty()).map(read).collect();
    let mut buffers = Buffers::new();
    let mut body = String::new();
    for (number, one) in listed.iter().enumerate() {
        instruction(number, one, &mut buffers, &mut body);
    }
    let mut text = String::from("isa miniature\nhbm memory: 1 GiB\n");
    for (label, elem, rank) in &buffers {
        let dims = vec![EXTENT.to_string(); *rank].join(", ");
        let _ = writeln!(text, "buffer {}: {elem}[{dims} | ]", buffer(label, elem, *rank));
    }
    // Truth values have no bytes of their own: they are made by comparisons and conversions, and stay on the chip.
    for (label, elem, rank) in buffers.iter().filter(|b| b.1 != "pred") {
        transfer(label, elem, *rank, &mut text);
    }
    text.push_str(&body);
    text.push_str(more);
    text
}

fn read(line: &str) -> Listed<'_> {
    let (elem, rest) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}`: element type and operator"));
    let (rest, range) = match rest.rsplit_once(" in ") {
        Some((rest, range)) => (rest, range.trim().to_owned()),
        None => (rest, format!("1..{EXTENT}")),
    };
    let (rest, places) = rest.split_once(" @").unwrap_or((rest, ">"));
    let (operands, result) = places.split_once('>').unwrap_or_else(|| panic!("`{line}`: `@operands>result`"));
    let (rest, rank) = match rest.trim().rsplit_once('/') {
        Some((rest, rank)) => (rest, rank.parse().unwrap_or_else(|e| panic!("`{line}`: {e}"))),
        None => (rest.trim(), 2),
    };
    let mut parts = rest.splitn(2, '.');
    let op = parts.next().unwrap_or_default();
    let attributes = match (op, parts.next()) {
        (_, None) => Vec::new(),
        ("splat", Some(value)) => vec![value],
        (_, Some(more)) => more.split('.').collect(),
    };
    let operands = operands.split('+').map(str::trim).collect();
    Listed { elem, op, attributes, rank, operands, result: result.trim(), range }
}

fn buffer(label: &str, elem: &str, rank: usize) -> String {
    let separator = if label.is_empty() { "" } else { "_" };
    format!("{label}{separator}{elem}_{rank}")
}

/// `m, n` for rank 2.
fn sizes(rank: usize) -> String {
    SIZES[..rank].join(", ")
}

fn alpha(rank: usize) -> String {
    SIZES[..rank].iter().map(|s| format!("{s}: 1..{EXTENT}")).collect::<Vec<_>>().join(", ")
}

/// The slice of a buffer that starts at the addresses with this prefix.
fn slice(label: &str, elem: &str, lens: &[&str], prefix: &str) -> String {
    let dims = lens.iter().enumerate().map(|(d, len)| format!("{prefix}{d} :+ {len}")).collect::<Vec<_>>();
    format!("{}[{}]", buffer(label, elem, lens.len()), dims.join(", "))
}

fn beta(prefix: &str, rank: usize) -> String {
    (0..rank).map(|d| format!("{prefix}{d}")).collect::<Vec<_>>().join(", ")
}

/// Dense loads and stores of one buffer.
fn transfer(label: &str, elem: &str, rank: usize, text: &mut String) {
    let width = elem.parse::<act_hlo::ElemType>().unwrap_or_else(|e| panic!("{elem}: {e}")).bytes();
    let lens = &SIZES[..rank];
    let (sizes, alpha) = (sizes(rank), alpha(rank));
    let bytes = [lens.join(" * "), width.to_string()].join(" * ");
    let with_bytes = if width == 1 { sizes.clone() } else { format!("{sizes}, {width}") };
    let name = buffer(label, elem, rank);
    let _ = write!(
        text,
        "
instr load_{name} alpha({alpha}) beta(addr, {b}) {{
  in  memory[addr :+ {bytes}]
  out {slot}
  cost 10
  computation {{
    x = u8[{bytes}] parameter(0)
    r = u8[{with_bytes}] reshape(x)
    ROOT y = {elem}[{sizes}] bitcast-convert(r)
  }}
}}
instr store_{name} alpha({alpha}) beta({b}, addr) {{
  in  {slot}
  out memory[addr :+ {bytes}]
  cost 10
  computation {{
    x = {elem}[{sizes}] parameter(0)
    r = u8[{with_bytes}] bitcast-convert(x)
    ROOT y = u8[{bytes}] reshape(r)
  }}
}}
",
        b = beta("r", rank),
        slot = slice(label, elem, lens, "r"),
    );
}

/// One operand of an instruction: element type and the names of its sizes.
type Operand<'a> = (&'a str, Vec<&'a str>);

fn instruction(number: usize, listed: &Listed<'_>, buffers: &mut Buffers, text: &mut String) {
    let Listed { elem, op, attributes, rank, operands: labels, result, range } = listed;
    let label = |k: usize| labels.get(k).or(labels.last()).copied().unwrap_or_default();
    let all = || SIZES[..*rank].to_vec();
    let attribute =
        |k: usize| attributes.get(k).copied().unwrap_or_else(|| panic!("`{op}` lacks attribute {k}"));
    let list = |k: usize| -> Vec<usize> {
        let parse = |d: &str| d.parse().unwrap_or_else(|e| panic!("`{op}`: {e}"));
        attribute(k).split('-').map(parse).collect()
    };
    let braces = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let (mut before, mut operands, mut out) = (String::new(), Vec::<Operand<'_>>::new(), all());
    let args = |n: usize| (0..n).map(|k| format!("x{k}")).collect::<Vec<_>>().join(", ");
    let expression = match *op {
        "compare" => {
            operands = vec![(attribute(1), all()), (attribute(1), all())];
            format!("compare(x0, x1), direction={}", attribute(0))
        }
        "select" => {
            operands = vec![("pred", all()), (elem, all()), (elem, all())];
            "select(x0, x1, x2)".to_owned()
        }
        "clamp" | "fma" => {
            operands = vec![(elem, all()); 3];
            format!("{op}(x0, x1, x2)")
        }
        "convert" | "bitcast-convert" => {
            operands = vec![(attribute(0), all())];
            format!("{op}(x0)")
        }
        "is-finite" => {
            operands = vec![(attribute(0), all())];
            format!("{op}(x0)")
        }
        "reduce" => {
            let dims = list(1);
            operands = vec![(elem, all())];
            out = (0..*rank).filter(|d| !dims.contains(d)).map(|d| SIZES[d]).collect();
            let init = match attribute(0) {
                "add" => "0",
                "multiply" => "1",
                "maximum" if elem.starts_with(['f', 'b']) => "-inf",
                "minimum" if elem.starts_with(['f', 'b']) => "inf",
                "maximum" if *elem == "s32" => "-2147483648",
                "minimum" if *elem == "s32" => "2147483647",
                other => panic!("no initial value for {elem} {other}"),
            };
            let _ = writeln!(before, "    init = {elem}[] constant({init})");
            format!("reduce(x0, init), dimensions={{{}}}, to_apply={}", braces(&dims), attribute(0))
        }
        "dot" | "mac" => {
            let (l, r) = (list(0)[0], list(1)[0]);
            let from = attributes.get(2).copied().unwrap_or(elem);
            let mut lhs = vec!["m", "p"];
            let mut rhs = vec!["n", "p"];
            if l == 0 {
                lhs.swap(0, 1);
            }
            if r == 0 {
                rhs.swap(0, 1);
            }
            operands = vec![(from, lhs), (from, rhs)];
            let dot = format!("dot(x0, x1), lhs_contracting_dims={{{l}}}, rhs_contracting_dims={{{r}}}");
            if *op == "mac" {
                operands.push((elem, all()));
                let _ = writeln!(before, "    d = {elem}[m, n] {dot}");
                "add(d, x2)".to_owned()
            } else {
                dot
            }
        }
        "transpose" => {
            let perm = list(0);
            operands = vec![(elem, all())];
            out = perm.iter().map(|&d| SIZES[d]).collect();
            format!("transpose(x0), dimensions={{{}}}", braces(&perm))
        }
        "reverse" => {
            operands = vec![(elem, all())];
            format!("reverse(x0), dimensions={{{}}}", braces(&list(0)))
        }
        "broadcast" => {
            let dims = list(0);
            operands = vec![(elem, dims.iter().map(|&d| SIZES[d]).collect())];
            format!("broadcast(x0), dimensions={{{}}}", braces(&dims))
        }
        "iota" => format!("iota(), iota_dimension={}", attribute(0)),
        "splat" => {
            let _ = writeln!(before, "    c = {elem}[] constant({})", attribute(0));
            "broadcast(c), dimensions={}".to_owned()
        }
        unary if UNARY.contains(&unary) => {
            operands = vec![(elem, all())];
            format!("{unary}(x0)")
        }
        binary => {
            operands = vec![(elem, all()), (elem, all())];
            format!("{binary}({})", args(2))
        }
    };
    let mut used: Vec<&str> = operands.iter().flat_map(|(_, dims)| dims.clone()).chain(out.clone()).collect();
    used.sort_unstable_by_key(|name| SIZES.iter().position(|s| s == name));
    used.dedup();
    let alpha = used.iter().map(|s| format!("{s}: {range}")).collect::<Vec<_>>().join(", ");
    let mut betas: Vec<String> = Vec::new();
    let (mut slices, mut parameters) = (String::new(), String::new());
    for (k, (elem, dims)) in operands.iter().enumerate() {
        buffers.insert((label(k).to_owned(), (*elem).to_owned(), dims.len()));
        let prefix = format!("{}", (b'a' + k as u8) as char);
        betas.push(beta(&prefix, dims.len()));
        let _ = writeln!(slices, "  in  {}", slice(label(k), elem, dims, &prefix));
        let _ = writeln!(parameters, "    x{k} = {elem}[{}] parameter({k})", dims.join(", "));
    }
    buffers.insert(((*result).to_owned(), (*elem).to_owned(), out.len()));
    betas.push(beta("r", out.len()));
    let name = op.replace('-', "_");
    let _ = write!(
        text,
        "
instr {name}_{number} alpha({alpha}) beta({}) {{
{slices}  out {}
  cost 1
  computation {{
{parameters}{before}    ROOT y = {elem}[{}] {expression}
  }}
}}
",
        betas.join(", "),
        slice(result, elem, &out, "r"),
        out.join(", "),
    );
}
