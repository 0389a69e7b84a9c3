//! From a checked case to its two programs: parameters are put in, index macros and commands expanded, constants folded.

use super::source::{HexError, Span};
use super::syntax::*;
use std::collections::HashMap;

/// A symbolic parameter that stays in the programs: `lo <= name < hi`.
#[derive(Clone, Debug)]
pub struct Symbolic {
    pub name: Sym,
    pub lo: i64,
    pub hi: i64,
    /// The value that programs are run with.
    pub sample: i64,
}

/// The programs of a case, ready to be run and proved.
#[derive(Clone, Debug)]
pub struct Expanded {
    pub name: String,
    pub names: Names,
    pub types: Vec<ElemType>,
    pub functions: Vec<Function>,
    pub symbolic: Vec<Symbolic>,
    /// What is assumed of symbolic parameters.
    pub requires: Vec<Expr>,
    /// All buffers of all programs.
    pub decls: Vec<Decl>,
    pub ir: Vec<Stmt>,
    /// What the case gives as the aligned program, or the tensor program itself.
    pub aligned: Vec<Stmt>,
    /// Whether the case leaves alignment to the search.
    pub align: bool,
    /// Driver code with every command's body in its place.
    pub hardware: Vec<Stmt>,
    pub relations: Vec<Relation>,
    /// Whether further relations are read off the data movement.
    pub infer: bool,
    pub invariants: Vec<Invariant>,
    pub posts: Vec<Post>,
}

impl Expanded {
    #[must_use]
    pub fn decl(&self, name: Sym) -> Option<&Decl> {
        self.decls.iter().find(|decl| decl.name == name)
    }

    /// Functions of the case that the two programs apply, in the order of their declaration.
    #[must_use]
    pub fn applied(&self) -> Vec<&Function> {
        let mut names = std::collections::HashSet::new();
        for body in [&self.aligned, &self.hardware] {
            visit_exprs(body, &mut |expr| {
                if let ExprKind::Apply(name, _) = &expr.kind {
                    names.insert(*name);
                }
            });
        }
        self.functions.iter().filter(|function| names.contains(&function.name)).collect()
    }

    #[must_use]
    pub fn function(&self, name: Sym) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// Expands a case that `check` has passed. `settings` give parameters other values; a symbolic one so set is no longer
/// symbolic.
///
/// # Errors
/// A parameter is no constant, a requirement does not hold, a name in a setting is no parameter, or a command's argument
/// would be captured by a counter of its body.
pub fn expand(case: &Case, settings: &[(&str, i64)]) -> Result<Expanded, HexError> {
    expand_open(case, settings, &HashMap::new())
}

/// Expands a case with some parameters left open, whatever the case says of them, to be run with the samples given here.
///
/// # Errors
/// As `expand`.
pub fn expand_open(
    case: &Case,
    settings: &[(&str, i64)],
    open: &HashMap<Sym, i64>,
) -> Result<Expanded, HexError> {
    let mut expander = Expander { case, values: HashMap::new() };
    let mut set = HashMap::new();
    for (name, value) in settings {
        let sym = case.names.find(name).filter(|sym| case.params.iter().any(|param| param.name == *sym));
        let sym =
            sym.ok_or_else(|| HexError::new(Span::default(), format!("there is no parameter `{name}`")))?;
        set.insert(sym, *value);
    }
    let mut symbolic = Vec::new();
    let mut samples = HashMap::new();
    for param in &case.params {
        let sample = |expr: &Expr, samples: &HashMap<Sym, Expr>| {
            constant(&substitute(&expander.expr(expr), samples))
                .ok_or_else(|| HexError::new(expr.span, "a parameter's value is a constant of 64 bits"))
        };
        let value = match open.get(&param.name).or_else(|| set.get(&param.name)) {
            Some(value) => *value,
            None => sample(&param.value, &samples)?,
        };
        samples.insert(param.name, Expr::int(value, param.span));
        if open.contains_key(&param.name) {
            symbolic.push(Symbolic { name: param.name, lo: 0, hi: i64::MAX, sample: value });
            continue;
        }
        match &param.range {
            Some((lo, hi)) if !set.contains_key(&param.name) => {
                let (lo, hi) = (sample(lo, &HashMap::new())?, sample(hi, &HashMap::new())?);
                if !(lo..hi).contains(&value) {
                    return Err(HexError::new(
                        param.span,
                        format!("the sample {value} is outside of {lo}..{hi}"),
                    ));
                }
                symbolic.push(Symbolic { name: param.name, lo, hi, sample: value });
            }
            // One computed from symbolic ones stays an expression of them.
            None if !set.contains_key(&param.name) => {
                let value = expander.expr(&param.value);
                expander.values.insert(param.name, value);
            }
            _ => {
                expander.values.insert(param.name, Expr::int(value, param.span));
            }
        }
    }
    let requires: Vec<Expr> = case.requires.iter().map(|expr| expander.expr(expr)).collect();
    for (expr, at) in requires.iter().zip(&case.requires) {
        if substitute(expr, &samples).kind != ExprKind::Bool(true) {
            return Err(HexError::new(at.span, "the parameters do not fulfil this requirement"));
        }
    }
    let requires = requires.into_iter().filter(|expr| expr.kind != ExprKind::Bool(true)).collect();
    let aligned = case.aligned.as_ref();
    let decls = case.ir.decls.iter().chain(aligned.iter().flat_map(|side| &side.decls));
    let decls = decls.chain(&case.state).chain(&case.mapping.decls).map(|decl| expander.decl(decl)).collect();
    let ir = expander.body(&case.ir.body)?;
    Ok(Expanded {
        name: case.name.clone(),
        names: case.names.clone(),
        types: case.types.clone(),
        functions: case.functions.iter().map(|function| expander.function(function)).collect(),
        symbolic,
        align: aligned.is_none(),
        infer: case.infer,
        requires,
        decls,
        aligned: aligned.map_or_else(|| Ok(ir.clone()), |side| expander.body(&side.body))?,
        ir,
        hardware: expander.body(&case.mapping.body)?,
        relations: case.relations.iter().map(|relation| expander.relation(relation)).collect(),
        invariants: case
            .invariants
            .iter()
            .map(|invariant| Invariant { formula: expander.expr(&invariant.formula), ..invariant.clone() })
            .collect(),
        posts: case
            .posts
            .iter()
            .map(|post| Post {
                left: expander.expr(&post.left),
                right: expander.expr(&post.right),
                vars: expander.vars(&post.vars),
                span: post.span,
            })
            .collect(),
    })
}

/// The value of a constant expression.
#[must_use]
pub fn constant(expr: &Expr) -> Option<i64> {
    match expr.kind {
        ExprKind::Int(value) => Some(value),
        _ => None,
    }
}

/// An expression with names replaced and constants folded.
#[must_use]
pub fn substitute(expr: &Expr, values: &HashMap<Sym, Expr>) -> Expr {
    let case = Case::default();
    let mut expander = Expander { case: &case, values: HashMap::new() };
    expander.values.clone_from(values);
    expander.expr(expr)
}

struct Expander<'a> {
    case: &'a Case,
    values: HashMap<Sym, Expr>,
}

impl Expander<'_> {
    fn exprs(&self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn decl(&self, decl: &Decl) -> Decl {
        Decl { dims: self.exprs(&decl.dims), ..decl.clone() }
    }

    /// The meaning of a function, with its own parameters left alone.
    fn function(&self, function: &Function) -> Function {
        let mut values = self.values.clone();
        for (name, _) in &function.params {
            values.remove(name);
        }
        let inner = Expander { case: self.case, values };
        Function {
            concrete: function.concrete.as_ref().map(|expr| inner.expr(expr)),
            reads: function.reads.as_ref().map(|expr| inner.expr(expr)),
            ..function.clone()
        }
    }

    fn vars(&self, vars: &[(Sym, Expr, Expr)]) -> Vec<(Sym, Expr, Expr)> {
        vars.iter().map(|(name, lo, hi)| (*name, self.expr(lo), self.expr(hi))).collect()
    }

    fn relation(&self, relation: &Relation) -> Relation {
        let position =
            |position: &Position| position.iter().map(|(value, label)| (self.expr(value), *label)).collect();
        Relation {
            left: self.expr(&relation.left),
            right: self.expr(&relation.right),
            vars: self.vars(&relation.vars),
            made: position(&relation.made),
            used: position(&relation.used),
            at: relation.at.clone(),
            span: relation.span,
        }
    }

    fn body(&self, body: &[Stmt]) -> Result<Vec<Stmt>, HexError> {
        let mut out = Vec::new();
        for stmt in body {
            let kind = match &stmt.kind {
                StmtKind::Let(name, value) => StmtKind::Let(*name, self.expr(value)),
                StmtKind::Assign(name, indices, value) => {
                    StmtKind::Assign(*name, self.exprs(indices), self.expr(value))
                }
                StmtKind::If(condition, then, other) => {
                    let condition = self.expr(condition);
                    // A switch that a parameter sets is no branch of the program.
                    if let ExprKind::Bool(taken) = condition.kind {
                        out.extend(self.body(if taken { then } else { other })?);
                        continue;
                    }
                    StmtKind::If(condition, self.body(then)?, self.body(other)?)
                }
                StmtKind::Loop(inner) => StmtKind::Loop(Box::new(Loop {
                    lo: self.expr(&inner.lo),
                    hi: self.expr(&inner.hi),
                    whereby: self.exprs(&inner.whereby),
                    until: inner.until.as_ref().map(|until| self.expr(until)),
                    body: self.body(&inner.body)?,
                    ..(**inner).clone()
                })),
                StmtKind::Call(name, arguments) => {
                    let call = self.case.calls.iter().find(|call| call.name == *name);
                    let call = call.ok_or_else(|| HexError::new(stmt.span, "there is no such command"))?;
                    let mut bound = Vec::new();
                    binders(&call.body, &mut bound);
                    let mut values = self.values.clone();
                    for (param, argument) in call.params.iter().zip(self.exprs(arguments)) {
                        if bound.iter().any(|name| mentions(&argument, *name)) {
                            let message =
                                "a counter of the command has the name of a counter in this argument";
                            return Err(HexError::new(stmt.span, message));
                        }
                        values.insert(*param, argument);
                    }
                    out.extend(Expander { case: self.case, values }.body(&call.body)?);
                    continue;
                }
            };
            out.push(Stmt { kind, span: stmt.span });
        }
        Ok(out)
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let span = expr.span;
        let kind = match &expr.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => expr.kind.clone(),
            ExprKind::Name(name) => match self.values.get(name) {
                // The place stays that of the use: that is where a reader looks.
                Some(value) => value.kind.clone(),
                None => expr.kind.clone(),
            },
            ExprKind::Access(name, indices) => ExprKind::Access(*name, self.exprs(indices)),
            ExprKind::Apply(name, arguments) => {
                let arguments = self.exprs(arguments);
                match self.case.macros.iter().find(|index| index.name == *name) {
                    Some(index) => {
                        let mut values = self.values.clone();
                        values.extend(index.params.iter().copied().zip(arguments));
                        Expander { case: self.case, values }.expr(&index.body).kind
                    }
                    None => ExprKind::Apply(*name, arguments),
                }
            }
            ExprKind::Builtin(builtin, arguments) => {
                let arguments = self.exprs(arguments);
                match (builtin, constant(&arguments[0]), constant(&arguments[1])) {
                    (Builtin::Min, Some(a), Some(b)) => ExprKind::Int(a.min(b)),
                    (Builtin::Max, Some(a), Some(b)) => ExprKind::Int(a.max(b)),
                    _ => ExprKind::Builtin(*builtin, arguments),
                }
            }
            ExprKind::Wrap(bits, inner) => {
                let inner = self.expr(inner);
                match constant(&inner) {
                    Some(value) => ExprKind::Int(value.rem_euclid(1 << bits)),
                    None => ExprKind::Wrap(*bits, Box::new(inner)),
                }
            }
            ExprKind::Negate(inner) => {
                let inner = self.expr(inner);
                match constant(&inner) {
                    Some(value) => ExprKind::Int(-value),
                    None => ExprKind::Negate(Box::new(inner)),
                }
            }
            ExprKind::Not(inner) => {
                let inner = self.expr(inner);
                match inner.kind {
                    ExprKind::Bool(value) => ExprKind::Bool(!value),
                    _ => ExprKind::Not(Box::new(inner)),
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                fold(*operator, &left, &right)
                    .unwrap_or_else(|| ExprKind::Binary(*operator, Box::new(left), Box::new(right)))
            }
            ExprKind::Select(condition, then, other) => {
                let condition = self.expr(condition);
                match condition.kind {
                    ExprKind::Bool(true) => self.expr(then).kind,
                    ExprKind::Bool(false) => self.expr(other).kind,
                    _ => ExprKind::Select(
                        Box::new(condition),
                        Box::new(self.expr(then)),
                        Box::new(self.expr(other)),
                    ),
                }
            }
        };
        Expr { kind, span }
    }
}

fn fold(operator: Binary, left: &Expr, right: &Expr) -> Option<ExprKind> {
    if let (ExprKind::Bool(a), ExprKind::Bool(b)) = (&left.kind, &right.kind) {
        return match operator {
            Binary::And => Some(ExprKind::Bool(*a && *b)),
            Binary::Or => Some(ExprKind::Bool(*a || *b)),
            _ => None,
        };
    }
    let (a, b) = (constant(left)?, constant(right)?);
    Some(match operator {
        Binary::Add => ExprKind::Int(a.checked_add(b)?),
        Binary::Sub => ExprKind::Int(a.checked_sub(b)?),
        Binary::Mul => ExprKind::Int(a.checked_mul(b)?),
        Binary::Div if b > 0 => ExprKind::Int(a.div_euclid(b)),
        Binary::Mod if b > 0 => ExprKind::Int(a.rem_euclid(b)),
        Binary::Div | Binary::Mod | Binary::And | Binary::Or => return None,
        Binary::Eq => ExprKind::Bool(a == b),
        Binary::Ne => ExprKind::Bool(a != b),
        Binary::Lt => ExprKind::Bool(a < b),
        Binary::Le => ExprKind::Bool(a <= b),
        Binary::Gt => ExprKind::Bool(a > b),
        Binary::Ge => ExprKind::Bool(a >= b),
    })
}

/// Counters and locals that statements bind.
fn binders(body: &[Stmt], bound: &mut Vec<Sym>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Let(name, _) => bound.push(*name),
            StmtKind::Loop(inner) => {
                bound.push(inner.counter);
                binders(&inner.body, bound);
            }
            StmtKind::If(_, then, other) => {
                binders(then, bound);
                binders(other, bound);
            }
            _ => {}
        }
    }
}

/// Whether a name occurs in an expression.
fn mentions(expr: &Expr, name: Sym) -> bool {
    let mut found = false;
    visit_expr(expr, &mut |part| {
        found |= matches!(part.kind, ExprKind::Name(one) | ExprKind::Access(one, _) if one == name);
    });
    found
}
