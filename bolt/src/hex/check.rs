//! What must hold of a case before it means anything: names are declared once and used as what they are, arities and types
//! fit, programs write only what is theirs.

use super::foreign::Foreign;
use super::source::{HexError, Span};
use super::syntax::*;
use std::collections::HashMap;

/// Checks a whole case.
///
/// # Errors
/// The first fault, with its place.
pub fn check(case: &Case) -> Result<(), HexError> {
    let mut checker = Checker { case, globals: HashMap::new(), scopes: Vec::new(), numeric: false };
    checker.case()
}

#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Shared,
    Ir,
    Hardware,
}

#[derive(Clone)]
enum Entry {
    Param,
    Buffer { rank: usize, ty: Type, role: Role, owner: Owner },
    Function { params: Vec<Type>, result: Type },
    Macro { arity: usize },
    Command { arity: usize },
}

struct Checker<'a> {
    case: &'a Case,
    globals: HashMap<Sym, Entry>,
    /// Counters and locals of the blocks around the place; a counter cannot be assigned.
    scopes: Vec<HashMap<Sym, (Type, bool)>>,
    /// Inside the meaning of a function all values are numbers.
    numeric: bool,
}

/// Registers hold integers.
fn value_of(ty: Type) -> Type {
    if matches!(ty, Type::Bits(_)) { Type::Int } else { ty }
}

impl Checker<'_> {
    fn text(&self, sym: Sym) -> &str {
        self.case.names.text(sym)
    }

    fn declare(&mut self, name: Sym, entry: Entry, span: Span) -> Result<(), HexError> {
        if self.globals.insert(name, entry).is_some() {
            return Err(HexError::new(span, format!("`{}` is declared twice", self.text(name))));
        }
        Ok(())
    }

    fn known_type(&self, ty: Type, span: Span) -> Result<(), HexError> {
        match ty {
            Type::Elem(sym) if !self.case.types.iter().any(|known| known.name == sym) => {
                Err(HexError::new(span, format!("there is no type `{}`", self.text(sym))))
            }
            _ => Ok(()),
        }
    }

    fn decls(&mut self, decls: &[Decl], owner: Owner) -> Result<(), HexError> {
        for decl in decls {
            self.known_type(decl.ty, decl.span)?;
            if decl.ty == Type::Int {
                return Err(HexError::new(
                    decl.span,
                    "a buffer holds elements, a register bits such as `bv16`",
                ));
            }
            for dim in &decl.dims {
                self.expect(dim, Type::Int)?;
            }
            let owner = if decl.role == Role::Input { Owner::Shared } else { owner };
            let entry = Entry::Buffer { rank: decl.dims.len(), ty: decl.ty, role: decl.role, owner };
            self.declare(decl.name, entry, decl.span)?;
        }
        Ok(())
    }

    fn case(&mut self) -> Result<(), HexError> {
        let case = self.case;
        for param in &case.params {
            if let Some((lo, hi)) = &param.range {
                self.expect(lo, Type::Int)?;
                self.expect(hi, Type::Int)?;
            }
            self.expect(&param.value, Type::Int)?;
            self.declare(param.name, Entry::Param, param.span)?;
        }
        for function in &case.functions {
            for (_, ty) in &function.params {
                self.known_type(*ty, function.span)?;
            }
            self.known_type(function.result, function.span)?;
            if !matches!(function.result, Type::Elem(_)) {
                return Err(HexError::new(
                    function.span,
                    "a function yields an element; integers come from `index`",
                ));
            }
            if function.commutative
                && (function.params.len() != 2 || function.params[0].1 != function.params[1].1)
            {
                return Err(HexError::new(
                    function.span,
                    "only a function of two alike operands can be commutative",
                ));
            }
            let params = function.params.iter().map(|(_, ty)| *ty).collect();
            let entry = Entry::Function { params, result: function.result };
            self.declare(function.name, entry, function.span)?;
        }
        self.numeric = true;
        for function in &case.functions {
            if let Some(text) = &function.foreign {
                Foreign::new(function, text, &case.names)
                    .map_err(|reason| HexError::new(function.span, reason))?;
            }
            for body in function.concrete.iter().chain(&function.reads) {
                self.scopes
                    .push(function.params.iter().map(|(name, _)| (*name, (Type::Int, false))).collect());
                self.expect(body, Type::Int)?;
                self.scopes.pop();
            }
        }
        self.numeric = false;
        for index in &case.macros {
            self.scopes.push(index.params.iter().map(|name| (*name, (Type::Int, false))).collect());
            self.expect(&index.body, Type::Int)?;
            self.scopes.pop();
            self.declare(index.name, Entry::Macro { arity: index.params.len() }, index.span)?;
        }
        for expr in &case.requires {
            self.expect(expr, Type::Bool)?;
        }
        self.decls(&case.ir.decls, Owner::Ir)?;
        if let Some(aligned) = &case.aligned {
            self.decls(&aligned.decls, Owner::Ir)?;
        }
        self.decls(&case.state, Owner::Hardware)?;
        self.decls(&case.mapping.decls, Owner::Hardware)?;
        self.block(&case.ir.body, Owner::Ir)?;
        if let Some(aligned) = &case.aligned {
            self.block(&aligned.body, Owner::Ir)?;
        }
        for call in &case.calls {
            self.scopes.push(call.params.iter().map(|name| (*name, (Type::Int, false))).collect());
            self.block(&call.body, Owner::Hardware)?;
            self.scopes.pop();
            self.declare(call.name, Entry::Command { arity: call.params.len() }, call.span)?;
        }
        self.block(&case.mapping.body, Owner::Hardware)?;
        self.relations()
    }

    fn labels(&self) -> HashMap<Sym, Vec<Sym>> {
        // Every label with the counters of the loops around and at it; both sides' for a label they share.
        fn walk(body: &[Stmt], around: &mut Vec<Sym>, found: &mut HashMap<Sym, Vec<Sym>>) {
            for stmt in body {
                match &stmt.kind {
                    StmtKind::Loop(inner) => {
                        around.push(inner.counter);
                        if let Some(label) = inner.label {
                            found.entry(label).or_default().extend(around.iter().copied());
                        }
                        walk(&inner.body, around, found);
                        around.pop();
                    }
                    StmtKind::If(_, then, other) => {
                        walk(then, around, found);
                        walk(other, around, found);
                    }
                    _ => {}
                }
            }
        }
        let mut found = HashMap::new();
        let aligned = self.case.aligned.as_ref().map_or(&self.case.ir.body, |side| &side.body);
        let commands = self.case.calls.iter().map(|call| &call.body);
        for body in [&self.case.ir.body, aligned, &self.case.mapping.body].into_iter().chain(commands) {
            walk(body, &mut Vec::new(), &mut found);
        }
        found
    }

    fn relations(&mut self) -> Result<(), HexError> {
        let labels = self.labels();
        let known = |checker: &Self, label: Sym, span: Span| {
            if labels.contains_key(&label) {
                Ok(())
            } else {
                Err(HexError::new(span, format!("no loop is labelled `@{}`", checker.text(label))))
            }
        };
        let case = self.case;
        for relation in &case.relations {
            // What is claimed at loops may speak of their counters.
            let mut counters = HashMap::new();
            for label in &relation.at {
                known(self, *label, relation.span)?;
                counters.extend(labels[label].iter().map(|name| (*name, (Type::Int, false))));
            }
            self.scopes.push(counters);
            self.vars(&relation.vars)?;
            for (value, label) in relation.made.iter().chain(&relation.used) {
                self.expect(value, Type::Int)?;
                known(self, *label, value.span)?;
            }
            self.pair(&relation.left, &relation.right)?;
            self.scopes.truncate(self.scopes.len() - 2);
        }
        for post in &case.posts {
            self.vars(&post.vars)?;
            self.pair(&post.left, &post.right)?;
            self.scopes.pop();
        }
        for invariant in &case.invariants {
            known(self, invariant.at, invariant.span)?;
            self.scopes.push(labels[&invariant.at].iter().map(|name| (*name, (Type::Int, false))).collect());
            self.expect(&invariant.formula, Type::Bool)?;
            self.scopes.pop();
        }
        Ok(())
    }

    /// Opens a scope with the variables of a relation.
    fn vars(&mut self, vars: &[(Sym, Expr, Expr)]) -> Result<(), HexError> {
        self.scopes.push(HashMap::new());
        for (name, lo, hi) in vars {
            self.expect(lo, Type::Int)?;
            self.expect(hi, Type::Int)?;
            self.bind(*name, Type::Int, false, lo.span)?;
        }
        Ok(())
    }

    /// Counters and locals hide no global: expansion puts values in by name.
    fn bind(&mut self, name: Sym, ty: Type, assignable: bool, span: Span) -> Result<(), HexError> {
        if self.globals.contains_key(&name) {
            return Err(HexError::new(span, format!("`{}` is declared already", self.text(name))));
        }
        self.scopes.last_mut().expect("a scope is open").insert(name, (ty, assignable));
        Ok(())
    }

    fn pair(&self, left: &Expr, right: &Expr) -> Result<(), HexError> {
        let ty = self.expr(left)?;
        if !matches!(ty, Type::Elem(_)) {
            return Err(HexError::new(
                left.span,
                "a relation is between elements; use `invariant` for registers",
            ));
        }
        self.expect(right, ty)
    }

    fn block(&mut self, body: &[Stmt], owner: Owner) -> Result<(), HexError> {
        self.scopes.push(HashMap::new());
        for stmt in body {
            self.stmt(stmt, owner)?;
        }
        self.scopes.pop();
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt, owner: Owner) -> Result<(), HexError> {
        match &stmt.kind {
            StmtKind::Let(name, value) => {
                let ty = self.expr(value)?;
                self.bind(*name, ty, true, stmt.span)?;
            }
            StmtKind::Assign(name, indices, value) => {
                let ty = self.place(*name, indices, stmt.span)?;
                match self.lookup(*name) {
                    Some((_, true)) => {}
                    Some((_, false)) => {
                        return Err(HexError::new(
                            stmt.span,
                            format!("the counter `{}` is not assigned", self.text(*name)),
                        ));
                    }
                    None => match self.globals.get(name) {
                        Some(Entry::Buffer { role: Role::Input, .. }) => {
                            return Err(HexError::new(
                                stmt.span,
                                format!("the input `{}` is not written", self.text(*name)),
                            ));
                        }
                        Some(Entry::Buffer { owner: of, .. }) if *of == owner => {}
                        _ => {
                            let message = format!("`{}` belongs to the other program", self.text(*name));
                            return Err(HexError::new(stmt.span, message));
                        }
                    },
                }
                self.expect(value, ty)?;
            }
            StmtKind::If(condition, then, other) => {
                self.expect(condition, Type::Bool)?;
                self.block(then, owner)?;
                self.block(other, owner)?;
            }
            StmtKind::Call(name, arguments) => {
                let Some(Entry::Command { arity }) = self.globals.get(name).cloned() else {
                    return Err(HexError::new(
                        stmt.span,
                        format!("there is no command `{}`", self.text(*name)),
                    ));
                };
                self.arity(*name, arity, arguments, stmt.span)?;
                for argument in arguments {
                    self.expect(argument, Type::Int)?;
                }
            }
            StmtKind::Loop(inner) => {
                self.expect(&inner.lo, Type::Int)?;
                self.expect(&inner.hi, Type::Int)?;
                self.scopes.push(HashMap::new());
                self.bind(inner.counter, Type::Int, false, stmt.span)?;
                for fact in &inner.whereby {
                    self.expect(fact, Type::Bool)?;
                }
                self.block(&inner.body, owner)?;
                self.scopes.pop();
                if let Some(until) = &inner.until {
                    self.expect(until, Type::Bool)?;
                }
            }
        }
        Ok(())
    }

    fn lookup(&self, name: Sym) -> Option<(Type, bool)> {
        self.scopes.iter().rev().find_map(|scope| scope.get(&name)).copied()
    }

    fn place(&self, name: Sym, indices: &[Expr], span: Span) -> Result<Type, HexError> {
        if let Some((ty, _)) = self.lookup(name) {
            if indices.is_empty() {
                return Ok(ty);
            }
            return Err(HexError::new(span, format!("`{}` has no dimensions", self.text(name))));
        }
        match self.globals.get(&name) {
            Some(Entry::Param) if indices.is_empty() => Ok(Type::Int),
            Some(Entry::Buffer { rank, ty, .. }) => {
                self.arity(name, *rank, indices, span)?;
                for index in indices {
                    self.expect(index, Type::Int)?;
                }
                Ok(value_of(*ty))
            }
            _ => Err(HexError::new(span, format!("`{}` is not declared", self.text(name)))),
        }
    }

    fn arity(&self, name: Sym, wanted: usize, found: &[Expr], span: Span) -> Result<(), HexError> {
        if wanted == found.len() {
            return Ok(());
        }
        Err(HexError::new(span, format!("`{}` takes {wanted}, not {}", self.text(name), found.len())))
    }

    fn show(&self, ty: Type) -> String {
        match ty {
            Type::Int | Type::Bits(_) => "an integer".to_owned(),
            Type::Bool => "a condition".to_owned(),
            Type::Elem(sym) => format!("an element of `{}`", self.text(sym)),
        }
    }

    fn expect(&self, expr: &Expr, wanted: Type) -> Result<(), HexError> {
        let found = self.expr(expr)?;
        if found == wanted {
            return Ok(());
        }
        Err(HexError::new(
            expr.span,
            format!("{} is expected here, not {}", self.show(wanted), self.show(found)),
        ))
    }

    fn expr(&self, expr: &Expr) -> Result<Type, HexError> {
        match &expr.kind {
            ExprKind::Int(_) => Ok(Type::Int),
            ExprKind::Bool(_) => Ok(Type::Bool),
            ExprKind::Name(name) => self.place(*name, &[], expr.span),
            ExprKind::Access(name, indices) => self.place(*name, indices, expr.span),
            ExprKind::Wrap(_, inner) | ExprKind::Negate(inner) => {
                self.expect(inner, Type::Int)?;
                Ok(Type::Int)
            }
            ExprKind::Not(inner) => {
                self.expect(inner, Type::Bool)?;
                Ok(Type::Bool)
            }
            ExprKind::Apply(name, arguments) => match self.globals.get(name) {
                Some(Entry::Function { params, result }) => {
                    self.arity(*name, params.len(), arguments, expr.span)?;
                    for (argument, ty) in arguments.iter().zip(params) {
                        self.expect(argument, if self.numeric { Type::Int } else { value_of(*ty) })?;
                    }
                    Ok(if self.numeric { Type::Int } else { *result })
                }
                Some(Entry::Macro { arity }) => {
                    self.arity(*name, *arity, arguments, expr.span)?;
                    for argument in arguments {
                        self.expect(argument, Type::Int)?;
                    }
                    Ok(Type::Int)
                }
                _ => Err(HexError::new(expr.span, format!("there is no function `{}`", self.text(*name)))),
            },
            ExprKind::Builtin(builtin, arguments) => {
                let ty = self.expr(&arguments[0])?;
                let whole = matches!(builtin, Builtin::Min | Builtin::Max);
                if ty == Type::Bool || (ty == Type::Int && !whole && !self.numeric) {
                    let message = format!("this function takes elements, not {}", self.show(ty));
                    return Err(HexError::new(expr.span, message));
                }
                self.expect(&arguments[1], ty)?;
                Ok(ty)
            }
            ExprKind::Select(condition, then, other) => {
                self.expect(condition, Type::Bool)?;
                let ty = self.expr(then)?;
                self.expect(other, ty)?;
                Ok(ty)
            }
            ExprKind::Binary(operator, left, right) => {
                let (operand, result) = match operator {
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Mod => {
                        (Type::Int, Type::Int)
                    }
                    Binary::And | Binary::Or => (Type::Bool, Type::Bool),
                    _ => (Type::Int, Type::Bool),
                };
                self.expect(left, operand)?;
                self.expect(right, operand)?;
                Ok(result)
            }
        }
    }
}
