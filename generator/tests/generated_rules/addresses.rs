//! Conditions over addresses: an instruction is selected only if some addresses meet them all.

use super::Outcome::{Refused, Uses};
use super::{Outcome, check, memory, parse};

/// An instruction that negates n elements, beside one that does so dearly, under conditions over the addresses x and z.
fn negating(extent: u64, require: &str) -> act_isa::Isa {
    let instr = |name: &str, cost: u64, require: &str| {
        format!(
            "instr {name} alpha(n: 1..64) beta(x, z) {{
  in  s32_1[x :+ n]
  out s32_1[z :+ n]
  cost {cost}
  {require}
  computation {{ a = s32[n] parameter(0)  ROOT r = s32[n] negate(a) }}
}}\n"
        )
    };
    let (cheap, dear) = (instr("op", 1, &format!("require {require}")), instr("plain", 500, ""));
    parse(&format!("{}{cheap}{dear}", memory("s32", 1, extent)))
}

fn vector(n: u64) -> String {
    format!("x = s32[{n}] parameter(0) ROOT r = s32[{n}] negate(x)")
}

#[test]
fn conditions_that_no_address_meets() {
    let some = |require: &str, lens: &[(u64, usize)]| {
        let isa = negating(64, require);
        let texts: Vec<(String, Outcome)> = lens.iter().map(|&(n, uses)| (vector(n), Uses(uses))).collect();
        let kernels: Vec<(&str, Outcome)> =
            texts.iter().map(|(text, outcome)| (text.as_str(), *outcome)).collect();
        check(&[(&isa, "op", &kernels)]);
    };
    // No remainder is both.
    some("x % 4 == 1 and (x + n) % 2 == 0", &[(4, 0), (3, 1)]);
    // The slot must end within a part of the buffer that it does not begin before.
    some("x >= 20 and x + n <= 32", &[(13, 0)]);
    // Beyond the buffer's end.
    some("x >= 60", &[(5, 0)]);
    some("x in {3, 5} and x + n <= 8", &[(6, 0)]);
    // Sums, differences and products of addresses.
    some("x + z == n + 3 and x - z == 2", &[(4, 0)]);
    some("x * n == 12", &[(5, 0)]);
    some("x == 2 * z + 1 and z >= 30", &[(4, 0)]);
    some("not (x < 40 or x > 40 + n) and x % 8 == 5", &[(4, 0)]);
    some("min(x, 10) == max(z, n + 5)", &[(6, 0)]);
    some("x / 16 == 2 and x % 16 == 9", &[(24, 0)]);
}

#[test]
fn alignment_and_main_memory() {
    let aligned = |require: &str| {
        parse(&format!(
            "buffer v: s32[64 | ] align(8)
instr load alpha(n: 1..64) beta(addr, r) {{
  in  d0[addr :+ n * 4]
  out v[r :+ n]
  cost 10
  computation {{ x = u8[n * 4] parameter(0)  y = u8[n, 4] reshape(x)  ROOT z = s32[n] bitcast-convert(y) }}
}}
instr store alpha(n: 1..64) beta(r, addr) {{
  in  v[r :+ n]
  out d0[addr :+ n * 4]
  cost 10
  computation {{ x = s32[n] parameter(0)  y = u8[n, 4] bitcast-convert(x)  ROOT z = u8[n * 4] reshape(y) }}
}}
instr op alpha(n: 1..64) beta(x, z) {{
  in  v[x :+ n]
  out v[z :+ n]
  require {require}
  computation {{ a = s32[n] parameter(0)  ROOT r = s32[n] negate(a) }}
}}\n"
        ))
    };
    let odd = aligned("(x + n) % 4 == 1");
    check(&[(&odd, "op", &[(&vector(4), Refused), (&vector(5), Uses(1))])]);
}
