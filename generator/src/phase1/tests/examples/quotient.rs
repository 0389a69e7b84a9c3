//! Examples of the rules on quotients.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    match rule {
        "mul-recip" | "div-bcast" | "softmax-shift" => quotient(rule, d),
        _ => return false,
    }
    true
}

fn quotient(rule: &str, d: &mut Draw) {
    let (m, n) = (1 + d.below(4), 2 + d.below(4));
    let x = d.parameter("f32", &[m, n]);
    match rule {
        "mul-recip" | "div-bcast" => {
            // Away from zero: exp is positive.
            let y = d.parameter("f32", &[m]);
            let mut y = d.op("f32", &[m], &format!("exponential({y})"));
            if rule == "mul-recip" {
                let one = d.splat("f32", &[m], "1");
                y = d.op("f32", &[m], &format!("divide({one}, {y})"));
            }
            let b = d.op("f32", &[m, n], &format!("broadcast({y}), dimensions={{0}}"));
            let op = if rule == "mul-recip" { "multiply" } else { "divide" };
            d.op("f32", &[m, n], &format!("{op}({x}, {b})"));
        }
        _ => {
            let top = d.parameter("f32", &[m]);
            let tops = d.op("f32", &[m, n], &format!("broadcast({top}), dimensions={{0}}"));
            let s = d.op("f32", &[m, n], &format!("subtract({x}, {tops})"));
            let e = d.op("f32", &[m, n], &format!("exponential({s})"));
            let zero = d.op("f32", &[], "constant(0)");
            let r = d.op("f32", &[m], &format!("reduce({e}, {zero}), dimensions={{1}}, to_apply=add_f32"));
            let b = d.op("f32", &[m, n], &format!("broadcast({r}), dimensions={{0}}"));
            d.op("f32", &[m, n], &format!("divide({e}, {b})"));
        }
    }
}
