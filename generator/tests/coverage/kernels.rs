//! The kernels of the table, as HLO text at any sizes and element types.

/// Element types and sizes of one column of the table.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    /// Of the operands of products.
    pub(crate) elem: &'static str,
    /// Of their results.
    pub(crate) sum: &'static str,
    pub(crate) m: u64,
    pub(crate) k: u64,
    pub(crate) n: u64,
}

const ROWS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

impl Numbers {
    pub(crate) fn float(&self) -> bool {
        self.sum.starts_with('f') || self.sum.starts_with("bf")
    }

    /// A kernel with combiners of the type of sums.
    fn module(&self, body: &str) -> String {
        let t = self.sum;
        let combiner = |op: &str, name: &str| {
            format!("{name} {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}\n")
        };
        format!("{}{}ENTRY kernel {{\n{body}}}", combiner("add", "plus"), combiner("maximum", "most"))
    }

    /// Parameters a and b, and their product p, which may be the root.
    fn product(&self, root: &str) -> String {
        let Numbers { elem, sum, m, k, n } = self;
        format!(
            "  a = {elem}[{m},{k}] parameter(0)\n  b = {elem}[{k},{n}] parameter(1)
  {root}p = {sum}[{m},{n}] dot(a, b), {ROWS}\n"
        )
    }

    /// A splat named `name` of the shape of the product.
    fn splat(&self, name: &str, value: &str) -> String {
        let Numbers { sum, m, n, .. } = self;
        format!(
            "  {name}_value = {sum}[] constant({value})
  {name} = {sum}[{m},{n}] broadcast({name}_value), dimensions={{}}\n"
        )
    }
}

/// The kernels; `None` where a kernel is of other types.
pub(crate) fn kernels(d: &Numbers) -> Vec<(&'static str, Option<String>)> {
    let Numbers { elem: e, sum: t, m, k, n } = *d;
    let float = |text: String| d.float().then_some(text);
    let integer = |text: String| (!d.float()).then_some(text);
    let p = d.product("");
    let after = |tail: &str| d.module(&format!("{p}{tail}"));
    let form = |a: &str, b: &str, dims: &str| {
        d.module(&format!(
            "  a = {e}[{a}] parameter(0)\n  b = {e}[{b}] parameter(1)\n  ROOT p = {t}[{m},{n}] dot(a, b), {dims}\n"
        ))
    };
    // Parameters x and y of the shape of the product, in the type of sums.
    let x = format!("  x = {t}[{m},{n}] parameter(0)\n");
    let zero_scalar = format!("  nothing = {t}[] constant(0)\n");
    let of_x = |tail: &str| d.module(&format!("{x}{tail}"));
    let chain = |count: usize, tail: &str| {
        let parameters = (0..count).map(|i| format!("  m{i} = {e}[{k},{k}] parameter({i})\n"));
        d.module(&format!("{}{tail}", parameters.collect::<String>()))
    };
    let square =
        |name: &str, of: &str, root: &str| format!("  {root}{name} = {e}[{k},{k}] dot({of}), {ROWS}\n");
    let rows_max = format!(
        "  low = {t}[] constant(-inf)
  top = {t}[{m}] reduce(x, low), dimensions={{1}}, to_apply=most
  tops = {t}[{m},{n}] broadcast(top), dimensions={{0}}
  shifted = {t}[{m},{n}] subtract(x, tops)
  e = {t}[{m},{n}] exponential(shifted)
  total = {t}[{m}] reduce(e, nothing), dimensions={{1}}, to_apply=plus
  totals = {t}[{m},{n}] broadcast(total), dimensions={{0}}\n"
    );
    let mean = |of: &str, name: &str| {
        format!(
            "  {name}_sum = {t}[{m}] reduce({of}, nothing), dimensions={{1}}, to_apply=plus
  {name}_one = {t}[{m},{n}] broadcast({name}_sum), dimensions={{0}}
  {name} = {t}[{m},{n}] multiply({name}_one, part)\n"
        )
    };
    let part = d.splat("part", &format!("{}", 1.0 / n as f64));
    let small = d.splat("small", "0.001");
    vec![
        ("matmul nn", Some(form(&format!("{m},{k}"), &format!("{k},{n}"), ROWS))),
        (
            "matmul nt",
            Some(form(
                &format!("{m},{k}"),
                &format!("{n},{k}"),
                "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            )),
        ),
        (
            "matmul tn",
            Some(form(
                &format!("{k},{m}"),
                &format!("{k},{n}"),
                "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            )),
        ),
        (
            "matmul tt",
            Some(form(
                &format!("{k},{m}"),
                &format!("{n},{k}"),
                "lhs_contracting_dims={0}, rhs_contracting_dims={1}",
            )),
        ),
        (
            "batched",
            Some(d.module(&format!(
                "  a = {e}[2,{m},{k}] parameter(0)\n  b = {e}[2,{k},{n}] parameter(1)
  ROOT p = {t}[2,{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}\n"
            ))),
        ),
        (
            "bias",
            Some(after(&format!(
                "  c = {t}[{n}] parameter(2)\n  cs = {t}[{m},{n}] broadcast(c), dimensions={{1}}\n  ROOT r = {t}[{m},{n}] add(p, cs)\n"
            ))),
        ),
        (
            "residual",
            Some(after(&format!("  c = {t}[{m},{n}] parameter(2)\n  ROOT r = {t}[{m},{n}] add(c, p)\n"))),
        ),
        ("relu", Some(after(&format!("{}  ROOT r = {t}[{m},{n}] maximum(p, z)\n", d.splat("z", "0"))))),
        (
            "gelu",
            float(after(&format!(
                "{}{}{}  cube1 = {t}[{m},{n}] multiply(p, p)
  cube = {t}[{m},{n}] multiply(cube1, p)
  c1 = {t}[{m},{n}] multiply(cube, k1)
  c2 = {t}[{m},{n}] add(p, c1)
  c3 = {t}[{m},{n}] multiply(c2, k2)
  c4 = {t}[{m},{n}] tanh(c3)
  c5 = {t}[{m},{n}] multiply(p, c4)
  c6 = {t}[{m},{n}] add(p, c5)
  ROOT r = {t}[{m},{n}] multiply(c6, half)\n",
                d.splat("k1", "0.044715"),
                d.splat("k2", "0.797884"),
                d.splat("half", "0.5")
            ))),
        ),
        (
            "gelu of erf",
            float(after(&format!(
                "{}{}{}  c1 = {t}[{m},{n}] multiply(p, k1)
  c2 = {t}[{m},{n}] erf(c1)
  c3 = {t}[{m},{n}] add(c2, one)
  c4 = {t}[{m},{n}] multiply(p, half)
  ROOT r = {t}[{m},{n}] multiply(c4, c3)\n",
                d.splat("k1", "0.70710677"),
                d.splat("one", "1"),
                d.splat("half", "0.5")
            ))),
        ),
        (
            "clamp",
            Some(after(&format!(
                "  lo = {t}[] constant(-3)\n  hi = {t}[] constant(5)\n  ROOT r = {t}[{m},{n}] clamp(lo, p, hi)\n"
            ))),
        ),
        (
            "requantize",
            (t == "s32").then(|| {
                after(&format!(
                    "  f = f32[{m},{n}] convert(p)\n  s = f32[] constant(0.037)\n  ss = f32[{m},{n}] broadcast(s), dimensions={{}}
  y = f32[{m},{n}] multiply(f, ss)\n  q = f32[{m},{n}] round-nearest-even(y)
  lo = f32[] constant(-128)\n  hi = f32[] constant(127)\n  c = f32[{m},{n}] clamp(lo, q, hi)
  ROOT r = s8[{m},{n}] convert(c)\n"
                ))
            }),
        ),
        (
            "saturate",
            (t == "s32").then(|| {
                after(&format!(
                    "  lo = s32[] constant(-128)\n  hi = s32[] constant(127)\n  c = s32[{m},{n}] clamp(lo, p, hi)\n  ROOT r = s8[{m},{n}] convert(c)\n"
                ))
            }),
        ),
        (
            "two results",
            Some(after(&format!(
                "{}  r = {t}[{m},{n}] maximum(p, z)\n  ROOT both = ({t}[{m},{n}], {t}[{m},{n}]) tuple(p, r)\n",
                d.splat("z", "0")
            ))),
        ),
        ("a b c", (e == t).then(|| chain(3, &(square("ab", "m0, m1", "") + &square("r", "ab, m2", "ROOT "))))),
        (
            "a b c d",
            (e == t).then(|| {
                chain(4, &(square("ab", "m0, m1", "") + &square("abc", "ab, m2", "") + &square("r", "abc, m3", "ROOT ")))
            }),
        ),
        (
            "(a b)(c d)",
            (e == t).then(|| {
                chain(4, &(square("ab", "m0, m1", "") + &square("cd", "m2, m3", "") + &square("r", "ab, cd", "ROOT ")))
            }),
        ),
        (
            "add chain",
            Some(of_x(&format!(
                "  y = {t}[{m},{n}] parameter(1)\n  w = {t}[{m},{n}] parameter(2)\n  xy = {t}[{m},{n}] add(x, y)\n  ROOT r = {t}[{m},{n}] add(xy, w)\n"
            ))),
        ),
        (
            "reduce columns",
            Some(of_x(&format!(
                "{zero_scalar}  ROOT r = {t}[{m}] reduce(x, nothing), dimensions={{1}}, to_apply=plus\n"
            ))),
        ),
        (
            "reduce rows",
            Some(of_x(&format!(
                "{zero_scalar}  ROOT r = {t}[{n}] reduce(x, nothing), dimensions={{0}}, to_apply=plus\n"
            ))),
        ),
        (
            "reduce rows of bytes",
            integer(d.module(&format!(
                "{zero_scalar}  x = {e}[{m},{n}] parameter(0)\n  w = {t}[{m},{n}] convert(x)\n  ROOT r = {t}[{n}] reduce(w, nothing), dimensions={{0}}, to_apply=plus\n"
            ))),
        ),
        (
            "broadcast",
            Some(d.module(&format!(
                "  x = {t}[{n}] parameter(0)\n  ROOT r = {t}[{m},{n}] broadcast(x), dimensions={{1}}\n"
            ))),
        ),
        (
            "broadcast columns",
            Some(d.module(&format!(
                "  x = {e}[{m}] parameter(0)\n  ROOT r = {e}[{m},{n}] broadcast(x), dimensions={{0}}\n"
            ))),
        ),
        (
            "reverse",
            Some(d.module(&format!(
                "  x = {e}[{m},{n}] parameter(0)\n  ROOT r = {e}[{m},{n}] reverse(x), dimensions={{0}}\n"
            ))),
        ),
        (
            "softmax",
            float(of_x(&format!("{zero_scalar}{rows_max}  ROOT r = {t}[{m},{n}] divide(e, totals)\n"))),
        ),
        (
            "layernorm",
            float(of_x(&format!(
                "{zero_scalar}{part}{small}{}  c = {t}[{m},{n}] subtract(x, mu)\n  c2 = {t}[{m},{n}] multiply(c, c)\n{}  v = {t}[{m},{n}] add(var, small)\n  q = {t}[{m},{n}] rsqrt(v)\n  ROOT r = {t}[{m},{n}] multiply(c, q)\n",
                mean("x", "mu"),
                mean("c2", "var")
            ))),
        ),
        (
            "rmsnorm",
            float(of_x(&format!(
                "{zero_scalar}{part}{small}  x2 = {t}[{m},{n}] multiply(x, x)\n{}  v = {t}[{m},{n}] add(var, small)\n  q = {t}[{m},{n}] rsqrt(v)\n  ROOT r = {t}[{m},{n}] multiply(x, q)\n",
                mean("x2", "var")
            ))),
        ),
        (
            "attention",
            float(d.module(&format!(
                "{zero_scalar}  q = {t}[{m},{k}] parameter(0)\n  kk = {t}[{n},{k}] parameter(1)\n  v = {t}[{n},{k}] parameter(2)
  s = {t}[{m},{n}] dot(q, kk), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  e = {t}[{m},{n}] exponential(s)
  total = {t}[{m}] reduce(e, nothing), dimensions={{1}}, to_apply=plus
  totals = {t}[{m},{n}] broadcast(total), dimensions={{0}}
  w = {t}[{m},{n}] divide(e, totals)
  ROOT r = {t}[{m},{k}] dot(w, v), {ROWS}\n"
            ))),
        ),
        ("convolution by taps", {
            let rows = m + 2;
            let tap = |i: u64| {
                format!(
                    "  x{i} = {e}[{m},{k}] slice(x), slice={{[{i}:{}], [0:{k}]}}\n  w{i} = {e}[1,{k},{n}] slice(w), slice={{[{i}:{}], [0:{k}], [0:{n}]}}\n  v{i} = {e}[{k},{n}] reshape(w{i})\n  p{i} = {t}[{m},{n}] dot(x{i}, v{i}), {ROWS}\n",
                    i + m,
                    i + 1
                )
            };
            Some(d.module(&format!(
                "  x = {e}[{rows},{k}] parameter(0)\n  w = {e}[3,{k},{n}] parameter(1)\n{}{}{}  s = {t}[{m},{n}] add(p0, p1)\n  ROOT r = {t}[{m},{n}] add(s, p2)\n",
                tap(0),
                tap(1),
                tap(2)
            )))
        }),
        ("convolution by im2col", {
            let (rows, wide) = (m + 2, 3 * k);
            let cut = |i: u64| format!("  x{i} = {e}[{m},{k}] slice(x), slice={{[{i}:{}], [0:{k}]}}\n", i + m);
            Some(d.module(&format!(
                "  x = {e}[{rows},{k}] parameter(0)\n  w = {e}[{wide},{n}] parameter(1)\n{}{}{}  all = {e}[{m},{wide}] concatenate(x0, x1, x2), dimensions={{1}}\n  ROOT r = {t}[{m},{n}] dot(all, w), {ROWS}\n",
                cut(0),
                cut(1),
                cut(2)
            )))
        }),
        (
            "shift left",
            integer(of_x(&format!("{}  ROOT r = {t}[{m},{n}] shift-left(x, c)\n", d.splat("c", "3")))),
        ),
        (
            "one-hot",
            Some(d.module(&format!(
                "  i = s32[{m}] parameter(0)\n  is = s32[{m},{n}] broadcast(i), dimensions={{0}}\n  j = s32[{m},{n}] iota(), iota_dimension=1\n  h = pred[{m},{n}] compare(is, j), direction=EQ\n{}{}  ROOT r = {t}[{m},{n}] select(h, one, z)\n",
                d.splat("one", "1"),
                d.splat("z", "0")
            ))),
        ),
        (
            "causal mask",
            Some(of_x(&format!(
                "  i = s32[{m},{n}] iota(), iota_dimension=0\n  j = s32[{m},{n}] iota(), iota_dimension=1\n  h = pred[{m},{n}] compare(i, j), direction=GE\n{}  ROOT r = {t}[{m},{n}] select(h, x, z)\n",
                d.splat("z", "0")
            ))),
        ),
        (
            "dropout",
            (t == "f32").then(|| {
                of_x(&format!(
                    "  bits = s32[{m},1] parameter(1)\n  row = s32[{m}] reshape(bits)\n  all = s32[{m},{n}] broadcast(row), dimensions={{0}}\n  j = s32[{m},{n}] iota(), iota_dimension=1\n  moved = s32[{m},{n}] shift-right-logical(all, j)\n  one = s32[] constant(1)\n  ones = s32[{m},{n}] broadcast(one), dimensions={{}}\n  bit = s32[{m},{n}] and(moved, ones)\n  zero = s32[] constant(0)\n  zeros = s32[{m},{n}] broadcast(zero), dimensions={{}}\n  kept = pred[{m},{n}] compare(bit, zeros), direction=NE\n{}  ROOT r = {t}[{m},{n}] select(kept, x, z)\n",
                    d.splat("z", "0")
                ))
            }),
        ),
        (
            "cross-entropy gradient",
            float(of_x(&format!(
                "{zero_scalar}{rows_max}  q = {t}[{m},{n}] divide(e, totals)\n  hot = {t}[{m},{n}] parameter(1)\n  ROOT r = {t}[{m},{n}] subtract(q, hot)\n"
            ))),
        ),
        (
            "cross-entropy gradient of labels",
            float(of_x(&format!(
                "{zero_scalar}{rows_max}{part}  q = {t}[{m},{n}] divide(e, totals)\n  l = s32[{m}] parameter(1)\n  ls = s32[{m},{n}] broadcast(l), dimensions={{0}}\n  j = s32[{m},{n}] iota(), iota_dimension=1\n  hit = pred[{m},{n}] compare(ls, j), direction=EQ\n  hot = {t}[{m},{n}] convert(hit)\n  d = {t}[{m},{n}] subtract(q, hot)\n  ROOT r = {t}[{m},{n}] multiply(d, part)\n"
            ))),
        ),
    ]
}

pub(crate) const fn numbers(elem: &'static str, sum: &'static str, [m, k, n]: [u64; 3]) -> Numbers {
    Numbers { elem, sum, m, k, n }
}
