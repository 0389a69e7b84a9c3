//! Examples of the byte layer: bits re-typed after a movement.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let rank = d.rank();
    let dims = d.dims(rank);
    let (from, to, parts) =
        [("f32", "s32", None), ("f32", "u8", Some(4)), ("s32", "bf16", Some(2))][d.below(3)];
    if !rule.starts_with("bcv-") {
        return false;
    }
    let x = d.parameter(from, &dims);
    let (m, mut out) = match rule {
        "bcv-rs" => {
            let flat = vec![dims.iter().product()];
            (d.op(from, &flat, &format!("reshape({x})")), flat)
        }
        "bcv-T" => d.transpose(from, &x, &dims),
        "bcv-slice" => d.slice(from, &x, &dims, true),
        "bcv-cat" => {
            let y = d.parameter(from, &dims);
            let mut out = dims.clone();
            out[0] *= 2;
            (d.op(from, &out, &format!("concatenate({x}, {y}), dimensions={{0}}")), out)
        }
        "bcv-bc" => d.broadcast(from, &x, &dims),
        "bcv-rev" => (d.op(from, &dims, &format!("reverse({x}), dimensions={{0}}")), dims.clone()),
        _ => return false,
    };
    out.extend(parts);
    d.op(to, &out, &format!("bitcast-convert({m})"));
    true
}
