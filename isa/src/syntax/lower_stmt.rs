//! Statements as written to statements of the model: operators with their attributes, operands by name, constants.

use super::ast::{ArgsAst, ConstantAst, Name, OptionAst, StmtAst, TermKind};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::parser::Parsed;
use super::released::{canonical, combiner};
use super::scope::{Meaning, Scope};
use crate::constant::{float_bytes, int_bytes};
use crate::expr::{Env, Expr};
use crate::model::{Stmt, SymConst, SymOp};
use act_hlo::{Binary, Direction, DotDims, ElemType, Literal, OpKind, Shape, Unary};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Operators that are neither unary nor binary elementwise.
pub(super) const STRUCTURED: [&str; 23] = [
    "parameter",
    "constant",
    "iota",
    "eye",
    "compare",
    "select",
    "clamp",
    "fma",
    "convert",
    "bitcast-convert",
    "copy",
    "reduce-precision",
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "dynamic-slice",
    "dynamic-update-slice",
    "pad",
    "reverse",
    "concatenate",
    "reduce",
    "dot",
];

/// Most elements of a constant written out in a description.
const MAX_CONSTANT: u64 = 1 << 20;

/// Statements of one computation while they are lowered.
pub(super) struct Block {
    pub scope: Rc<Scope>,
    pub stmts: Vec<Stmt>,
    pub spans: Vec<Span>,
    /// Statements that only stand in for a scalar (`released.rs`): dropped where nothing uses them.
    pub spare: Vec<usize>,
    /// Names known here and the statements that give them their values.
    pub visible: BTreeMap<String, usize>,
    /// Names assigned in each enclosing `if` or `repeat` block, innermost last.
    pub assigned: Vec<Vec<String>>,
}

/// The scalar of type `elem` that a constant as written is.
///
/// # Errors
/// A list, an attribute, a value that the type does not hold.
pub(super) fn scalar_literal(c: &ConstantAst, elem: ElemType, scope: &Scope, span: Span) -> Parsed<Literal> {
    let block = Block::new(scope.clone());
    literal(elem, Vec::new(), block.element(c, elem)?, span)
}

impl Block {
    /// A name for a statement that the text does not spell.
    pub(super) fn fresh(&self, base: &str, suffix: &str) -> String {
        let mut name = format!("{base}.{suffix}");
        while self.stmts.iter().any(|s| s.name == name) {
            name.push_str(".x");
        }
        name
    }

    pub(super) fn stmt(&mut self, ast: &StmtAst, inputs: usize) -> Parsed<usize> {
        self.may_assign(&ast.name)?;
        let scope = Rc::clone(&self.scope);
        let dims = ast.dims.iter().map(|d| self.scope.expr(d)).collect::<Parsed<Vec<Expr>>>()?;
        let options = Options { scope: &scope, op: &ast.op, list: &ast.options };
        options.all_known()?;
        let stmt = |op: SymOp, operands: Vec<usize>| Stmt {
            name: ast.name.text.clone(),
            op,
            operands,
            elem: ast.elem,
            dims: dims.clone(),
        };
        let done = match &ast.args {
            ArgsAst::Parameter(index) => {
                if !self.assigned.is_empty() {
                    return Err(Diagnostic::error(index.span, Problem::NestedParameter));
                }
                let at = self.scope.value(index)?;
                if usize::try_from(at).map_or(true, |at| at >= inputs) {
                    let problem = Problem::Type {
                        alpha: String::new(),
                        message: format!("parameter({at}), but the instruction has {inputs} `in` slices"),
                        fits: None,
                    };
                    return Err(Diagnostic::error(index.span, problem));
                }
                stmt(SymOp::Parameter(at as u32), Vec::new())
            }
            ArgsAst::Constant(constant) => {
                let constant = self.constant(constant, ast, &dims)?;
                let scalar = match &constant {
                    SymConst::Literal(literal) => literal.shape().rank() == 0,
                    SymConst::Int(_) | SymConst::F32Attr(_) => true,
                };
                if scalar && !dims.is_empty() {
                    // A splat: the model has scalar constants and explicit broadcasts.
                    let name = self.fresh(&ast.name.text, "scalar");
                    let op = SymOp::Constant(constant);
                    let one = Stmt { name, op, operands: Vec::new(), elem: ast.elem, dims: Vec::new() };
                    let at = self.push(one, ast.span);
                    if dims == [Expr::Int(1)] {
                        self.spare.push(at + 1);
                    }
                    stmt(SymOp::Broadcast { dims: Vec::new() }, vec![at])
                } else {
                    stmt(SymOp::Constant(constant), Vec::new())
                }
            }
            ArgsAst::Operands(names) => {
                let mut operands = names.iter().map(|n| self.operand(n)).collect::<Parsed<Vec<usize>>>()?;
                let op = match ast.op.text.strip_prefix("reduce-").and_then(combiner) {
                    Some(combiner) => SymOp::Reduce { dims: options.dimension_list("dimensions")?, combiner },
                    None => match super::released::selection(&ast.op.text) {
                        Some(direction) => {
                            operands = self.selection(direction, &operands, ast)?;
                            SymOp::Select
                        }
                        None => options.operator()?,
                    },
                };
                if let SymOp::Reduce { combiner, .. } = op
                    && operands.len() == 1
                {
                    operands.push(match options.get("init") {
                        Some(OptionAst::Constant(init)) => self.initial(init, ast)?,
                        _ => self.neutral(combiner, ast)?,
                    });
                }
                let op = self.fit_scalars(op, &mut operands, ast, &dims);
                stmt(op, operands)
            }
        };
        Ok(self.push(done, ast.span))
    }

    /// The initial value of released TAIDL's `reduce_add` and its like, as a statement.
    fn neutral(&mut self, combiner: Binary, ast: &StmtAst) -> Parsed<usize> {
        let elem = ast.elem;
        let bytes = match combiner {
            Binary::Add => int_bytes(elem, 0),
            Binary::Multiply => int_bytes(elem, 1),
            Binary::Maximum if elem.is_float() => float_bytes(elem, f64::NEG_INFINITY),
            Binary::Minimum if elem.is_float() => float_bytes(elem, f64::INFINITY),
            Binary::Maximum if elem.is_signed_int() => int_bytes(elem, -(1i128 << (elem.bits() - 1))),
            Binary::Minimum if elem.is_signed_int() => int_bytes(elem, (1i128 << (elem.bits() - 1)) - 1),
            Binary::Maximum | Binary::Or => int_bytes(elem, 0),
            Binary::Minimum | Binary::And if elem.is_unsigned_int() => {
                int_bytes(elem, (1i128 << elem.bits()) - 1)
            }
            _ => {
                let message = "has no known initial value; spell reduce(x, init) with to_apply".to_owned();
                let problem = Problem::Operator { op: ast.op.text.clone(), message };
                return Err(Diagnostic::error(ast.op.span, problem));
            }
        };
        let bytes = bytes.map_err(|e| Diagnostic::error(ast.op.span, e.into()))?;
        let op = SymOp::Constant(SymConst::Literal(literal(elem, Vec::new(), bytes, ast.span)?));
        let name = self.fresh(&ast.name.text, "init");
        Ok(self.push(Stmt { name, op, operands: Vec::new(), elem, dims: Vec::new() }, ast.span))
    }

    /// The value of `init=` as a statement.
    fn initial(&mut self, init: &ConstantAst, ast: &StmtAst) -> Parsed<usize> {
        let constant = self.constant(init, ast, &[])?;
        let name = self.fresh(&ast.name.text, "init");
        let op = SymOp::Constant(constant);
        Ok(self.push(Stmt { name, op, operands: Vec::new(), elem: ast.elem, dims: Vec::new() }, ast.span))
    }

    fn constant(&self, constant: &ConstantAst, ast: &StmtAst, dims: &[Expr]) -> Parsed<SymConst> {
        let elem = ast.elem;
        match constant {
            ConstantAst::Term(term) => {
                if let TermKind::Name(name) = &term.kind
                    && let Some(Meaning::F32Alpha(at)) = self.scope.meaning(name)
                {
                    if !elem.is_float() {
                        let message =
                            format!("an f32 attribute is a constant of a float type, not of {elem}");
                        let problem = Problem::Operator { op: ast.op.text.clone(), message };
                        return Err(Diagnostic::error(term.span, problem));
                    }
                    return Ok(SymConst::F32Attr(at));
                }
                match self.scope.expr(term)? {
                    Expr::Int(v) => {
                        let bytes = int_bytes(elem, i128::from(v))
                            .map_err(|e| Diagnostic::error(term.span, e.into()))?;
                        Ok(SymConst::Literal(literal(elem, Vec::new(), bytes, term.span)?))
                    }
                    expr => Ok(SymConst::Int(expr)),
                }
            }
            ConstantAst::Float(_, span) | ConstantAst::Hex(_, span) => {
                let bytes = self.element(constant, elem)?;
                Ok(SymConst::Literal(literal(elem, Vec::new(), bytes, *span)?))
            }
            ConstantAst::List(_, span) => {
                let size = |e: &Expr| {
                    e.eval(Env::default()).ok().and_then(|v| u64::try_from(v).ok()).ok_or_else(|| {
                        let why = "a constant written out needs fixed sizes".to_owned();
                        Diagnostic::error(ast.span, Problem::NotConstant(why))
                    })
                };
                let shape = Shape::new(elem, dims.iter().map(size).collect::<Parsed<Vec<u64>>>()?);
                if shape.elements() > MAX_CONSTANT {
                    let limit = MAX_CONSTANT as usize;
                    return Err(Diagnostic::error(*span, Problem::TooMany { what: "elements", limit }));
                }
                let mut bytes = Vec::new();
                self.elements(constant, elem, &shape.dims, &mut bytes)?;
                Ok(SymConst::Literal(literal(elem, shape.dims, bytes, *span)?))
            }
        }
    }

    /// Appends the elements of a nested list; a flat list of all elements is also taken.
    fn elements(&self, c: &ConstantAst, elem: ElemType, dims: &[u64], out: &mut Vec<u8>) -> Parsed<()> {
        let ConstantAst::List(items, span) = c else {
            if dims.is_empty() {
                out.extend(self.element(c, elem)?);
                return Ok(());
            }
            let problem = Problem::Expected { expected: "`{`".to_owned(), found: "a number".to_owned() };
            return Err(Diagnostic::error(constant_span(c), problem));
        };
        let flat = items.iter().all(|i| !matches!(i, ConstantAst::List(..)));
        let (expected, inner) = match dims {
            [] => (1, dims),
            _ if flat => (dims.iter().fold(1u64, |n, &d| n.saturating_mul(d)), &dims[dims.len()..]),
            [first, inner @ ..] => (*first, inner),
        };
        if items.len() as u64 != expected {
            let what = "elements of the constant".to_owned();
            let problem = Problem::Count { what, expected: expected as usize, got: items.len() };
            return Err(Diagnostic::error(*span, problem));
        }
        items.iter().try_for_each(|item| self.elements(item, elem, inner, out))
    }

    fn element(&self, c: &ConstantAst, elem: ElemType) -> Parsed<Vec<u8>> {
        let bytes = match c {
            ConstantAst::Term(term) => int_bytes(elem, i128::from(self.scope.value(term)?)),
            ConstantAst::Float(value, _) => float_bytes(elem, *value),
            ConstantAst::Hex(bits, _) if elem.is_float() && bits >> elem.bits() == 0 => {
                Ok(bits.to_le_bytes().into_iter().take(elem.bytes() as usize).collect())
            }
            ConstantAst::Hex(bits, _) => int_bytes(elem, i128::try_from(*bits).unwrap_or(i128::MAX)),
            ConstantAst::List(_, span) => {
                let problem = Problem::Expected { expected: "a number".to_owned(), found: "`{`".to_owned() };
                return Err(Diagnostic::error(*span, problem));
            }
        };
        bytes.map_err(|e| Diagnostic::error(constant_span(c), e.into()))
    }
}

fn constant_span(c: &ConstantAst) -> Span {
    match c {
        ConstantAst::Term(term) => term.span,
        ConstantAst::Float(_, span) | ConstantAst::Hex(_, span) | ConstantAst::List(_, span) => *span,
    }
}

fn literal(elem: ElemType, dims: Vec<u64>, bytes: Vec<u8>, span: Span) -> Parsed<Literal> {
    Literal::from_bytes(Shape::new(elem, dims), bytes).map_err(|e| {
        let problem = Problem::Type { alpha: String::new(), message: e.to_string(), fits: None };
        Diagnostic::error(span, problem)
    })
}

fn is_operator(name: &str) -> bool {
    let name = canonical(name);
    STRUCTURED.contains(&name)
        || Unary::from_name(name).is_some()
        || combiner(name).is_some()
        || super::released::selection(name).is_some()
}

/// The attributes behind an operator.
struct Options<'a> {
    scope: &'a Scope,
    op: &'a Name,
    list: &'a [(Name, OptionAst)],
}

/// Attributes each structured operator takes; the others take none.
fn option_names(op: &str) -> &'static [&'static str] {
    match op {
        "iota" => &["iota_dimension"],
        "compare" => &["direction"],
        "reduce-precision" => &["exponent_bits", "mantissa_bits"],
        "broadcast" | "transpose" | "reverse" | "concatenate" => &["dimensions"],
        "slice" => &["slice"],
        "dynamic-slice" => &["dynamic_slice_sizes"],
        "pad" => &["low", "high", "interior"],
        "reduce" => &["dimensions", "to_apply", "init"],
        "dot" => &["lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims"],
        _ if op.strip_prefix("reduce-").and_then(combiner).is_some() => &["dimensions", "init"],
        _ => &[],
    }
}

impl Options<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let problem = Problem::Operator { op: self.op.text.clone(), message: message.into() };
        Err(Diagnostic::error(self.op.span, problem))
    }

    /// Every attribute is one that the operator takes. An unknown operator is reported elsewhere.
    fn all_known(&self) -> Parsed<()> {
        let known = option_names(canonical(&self.op.text));
        if known.is_empty() && !is_operator(&self.op.text) {
            return Ok(());
        }
        for (k, (name, _)) in self.list.iter().enumerate() {
            if !known.contains(&name.text.as_str()) {
                let nearest = nearest(&name.text, known.iter().copied());
                let what = "attribute of the operator";
                let problem = Problem::UnknownName { what, name: name.text.clone(), nearest };
                return Err(Diagnostic::error(name.span, problem));
            }
            if self.list[..k].iter().any(|(earlier, _)| earlier.text == name.text) {
                let problem = Problem::DuplicateName { what: "attribute", name: name.text.clone() };
                return Err(Diagnostic::error(name.span, problem));
            }
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&OptionAst> {
        self.list.iter().find(|(n, _)| n.text == name).map(|(_, value)| value)
    }

    fn exprs(&self, name: &str) -> Parsed<Vec<Expr>> {
        match self.get(name) {
            Some(OptionAst::Terms(terms)) => terms.iter().map(|t| self.scope.expr(t)).collect(),
            Some(_) => self.fail(format!("`{name}` is a list in braces")),
            None => self.fail(format!("needs `{name}={{..}}`")),
        }
    }

    fn dimension_list(&self, name: &str) -> Parsed<Vec<usize>> {
        let dims = self.exprs(name)?;
        let dims: Option<Vec<usize>> =
            dims.iter().map(|e| e.eval(Env::default()).ok().and_then(|v| usize::try_from(v).ok())).collect();
        match dims {
            Some(dims) => Ok(dims),
            None => self.fail(format!("`{name}` lists dimension numbers")),
        }
    }

    fn number(&self, name: &str) -> Parsed<u32> {
        match self.get(name) {
            Some(OptionAst::Word(term)) => match u32::try_from(self.scope.value(term)?) {
                Ok(value) => Ok(value),
                Err(_) => self.fail(format!("`{name}` is out of range")),
            },
            Some(_) => self.fail(format!("`{name}` is one number")),
            None => self.fail(format!("needs `{name}=..`")),
        }
    }

    /// A bare word; `-` and `_` inside are the same.
    fn word(&self, name: &str) -> Parsed<String> {
        match self.get(name) {
            Some(OptionAst::Word(term)) => match &term.kind {
                TermKind::Name(word) => Ok(word.replace('_', "-")),
                _ => self.fail(format!("`{name}` is a word")),
            },
            _ => self.fail(format!("needs `{name}=..`")),
        }
    }

    fn operator(&self) -> Parsed<SymOp> {
        let name = canonical(&self.op.text);
        if let Some(unary) = Unary::from_name(name) {
            return Ok(OpKind::Unary(unary));
        }
        if let Some(binary) = Binary::from_name(name) {
            return Ok(OpKind::Binary(binary));
        }
        Ok(match name {
            "iota" => OpKind::Iota { dim: self.number("iota_dimension")? as usize },
            "eye" => OpKind::Eye,
            "compare" => {
                let word = self.word("direction")?;
                match Direction::from_name(&word) {
                    Some(direction) => OpKind::Compare(direction),
                    None => return self.fail("`direction` is one of EQ, NE, LT, LE, GT, GE"),
                }
            }
            "select" => OpKind::Select,
            "clamp" => OpKind::Clamp,
            "fma" => OpKind::Fma,
            "convert" => OpKind::Convert,
            "bitcast-convert" => OpKind::BitcastConvert,
            "copy" => OpKind::Copy,
            "reduce-precision" => OpKind::ReducePrecision {
                exponent_bits: self.number("exponent_bits")?,
                mantissa_bits: self.number("mantissa_bits")?,
            },
            // Without `dimensions` it spreads a scalar.
            "broadcast" if self.get("dimensions").is_none() => OpKind::Broadcast { dims: Vec::new() },
            "broadcast" => OpKind::Broadcast { dims: self.dimension_list("dimensions")? },
            "reshape" => OpKind::Reshape,
            "transpose" => OpKind::Transpose { perm: self.dimension_list("dimensions")? },
            "slice" => self.slice()?,
            "dynamic-slice" => OpKind::DynamicSlice { sizes: self.exprs("dynamic_slice_sizes")? },
            "dynamic-update-slice" => OpKind::DynamicUpdateSlice,
            "pad" => OpKind::Pad {
                low: self.exprs("low")?,
                high: self.exprs("high")?,
                interior: self.exprs("interior")?,
            },
            "reverse" => OpKind::Reverse { dims: self.dimension_list("dimensions")? },
            "concatenate" => match self.dimension_list("dimensions")?.as_slice() {
                [dim] => OpKind::Concatenate { dim: *dim },
                _ => return self.fail("`dimensions` names one dimension"),
            },
            "reduce" => {
                let word = self.word("to_apply")?;
                let Some(combiner) = super::released::named_combiner(&word) else {
                    let nearest = nearest(&word, Binary::ALL.iter().map(|b| b.name()));
                    let problem = Problem::UnknownName { what: "combiner", name: word, nearest };
                    return Err(Diagnostic::error(self.op.span, problem));
                };
                OpKind::Reduce { dims: self.dimension_list("dimensions")?, combiner }
            }
            "dot" => {
                let optional = |name: &str| match self.get(name) {
                    Some(_) => self.dimension_list(name),
                    None => Ok(Vec::new()),
                };
                OpKind::Dot(DotDims {
                    lhs_batch: optional("lhs_batch_dims")?,
                    rhs_batch: optional("rhs_batch_dims")?,
                    lhs_contracting: self.dimension_list("lhs_contracting_dims")?,
                    rhs_contracting: self.dimension_list("rhs_contracting_dims")?,
                })
            }
            _ => {
                let unary = Unary::ALL.iter().map(|u| u.name());
                let known = unary.chain(Binary::ALL.iter().map(|b| b.name())).chain(STRUCTURED);
                let nearest = nearest(name, known);
                let problem = Problem::UnknownName { what: "operator", name: name.to_owned(), nearest };
                return Err(Diagnostic::error(self.op.span, problem));
            }
        })
    }

    fn slice(&self) -> Parsed<SymOp> {
        let Some(OptionAst::Ranges(ranges)) = self.get("slice") else {
            return self.fail("needs `slice={[start:limit:stride], ..}`");
        };
        let (mut start, mut limit, mut stride) = (Vec::new(), Vec::new(), Vec::new());
        for (s, l, p) in ranges {
            start.push(self.scope.expr(s)?);
            limit.push(self.scope.expr(l)?);
            stride.push(match p {
                Some(p) => self.scope.expr(p)?,
                None => Expr::Int(1),
            });
        }
        Ok(OpKind::Slice { start, limit, stride })
    }
}
