//! The parser and the evaluator against XLA's CPU backend: golden/xla_cpu.json.gz holds modules as XLA prints them
//! and what it computed; generate_golden.py writes it.
//!
//! A NaN equals every NaN, since its sign and payload are the hardware's choice.

use act_hlo::compare::compare;
use act_hlo::{ElemType, Literal, Shape, eval, parse_graph, print_graph};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufReader;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    (0..hexadecimal.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hexadecimal[i..i + 2], 16).unwrap())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn tensor(value: &Value) -> Literal {
    let dims: Vec<u64> = value[1].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
    Literal::from_bytes(Shape::new(text(&value[0]).parse().unwrap(), dims), bytes(text(&value[2]))).unwrap()
}

/// Position of a float among all floats of its type, so that neighbours differ by 1; `None` for NaN.
fn rank(elem: ElemType, bytes: &[u8]) -> Option<i128> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let mantissa = match elem {
        ElemType::F16 => 10,
        ElemType::BF16 => 7,
        ElemType::F32 => 23,
        _ => 52,
    };
    let sign = 1u64 << (elem.bits() - 1);
    let infinity = (sign - 1) >> mantissa << mantissa;
    let magnitude = i128::from(bits & (sign - 1));
    (magnitude <= i128::from(infinity)).then_some(if bits & sign == 0 { magnitude } else { -magnitude })
}

/// What is wrong with `got`, if anything.
fn disagreement(allowed: &str, expected: &Literal, got: &Literal) -> Option<String> {
    if expected.shape() != got.shape() {
        return Some(format!("shape {} instead of {}", got.shape(), expected.shape()));
    }
    let elem = expected.elem();
    if let Some(roundings) = allowed.strip_suffix(" roundings") {
        let difference = compare(expected, got);
        let fits = difference.roundings <= roundings.parse().unwrap();
        return (!fits).then(|| format!("{difference}, {allowed} are allowed"));
    }
    let ulps: i128 = allowed.strip_suffix(" ulps").map_or(0, |n| n.parse().unwrap());
    (0..expected.shape().elements()).find_map(|i| {
        let (want, have) = (expected.element_bytes(i), got.element_bytes(i));
        let fits = if elem.is_float() {
            match (rank(elem, want), rank(elem, have)) {
                (None, None) => true,
                (Some(a), Some(b)) if ulps > 0 => (a - b).abs() <= ulps,
                (Some(_), Some(_)) => want == have,
                _ => false,
            }
        } else {
            want == have
        };
        (!fits).then(|| format!("element {i} is {have:02x?}, XLA has {want:02x?} ({allowed})"))
    })
}

#[test]
fn agrees_with_xla_on_the_cpu() {
    let packed = GzDecoder::new(&include_bytes!("golden/xla_cpu.json.gz")[..]);
    let golden: Value = serde_json::from_reader(BufReader::new(packed)).unwrap();
    let tensors: BTreeMap<&str, Literal> =
        golden["tensors"].as_object().unwrap().iter().map(|(name, v)| (name.as_str(), tensor(v))).collect();
    let (mut failures, mut checked) = (Vec::new(), 0);
    for case in golden["cases"].as_array().unwrap() {
        let name = text(&case["name"]);
        let graph = parse_graph(text(&case["hlo"])).unwrap_or_else(|e| panic!("{name}:\n{e}"));
        let again = parse_graph(&print_graph(&graph)).unwrap_or_else(|e| panic!("{name}, printed:\n{e}"));
        assert_eq!(graph, again, "{name} printed and read");
        let names = case["inputs"].as_array().unwrap();
        let inputs: Vec<Literal> = names.iter().map(|input| tensors[text(input)].clone()).collect();
        let results = eval(&graph, &inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
        let outputs = case["outputs"].as_array().unwrap();
        assert_eq!(results.len(), outputs.len(), "{name}");
        for (k, (output, result)) in outputs.iter().zip(&results).enumerate() {
            let expected = Literal::from_bytes(result.shape().clone(), bytes(text(&output[1]))).unwrap();
            checked += 1;
            if let Some(why) = disagreement(text(&output[0]), &expected, result) {
                let root = graph.node(graph.roots()[k]);
                failures.push(format!("{name}, root {k} ({} to {}): {why}", root.op.name(), root.shape));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {checked} results:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 700, "only {checked} results");
}
