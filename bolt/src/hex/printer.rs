//! A case as text again, in one file: what it included is printed in place. Parsing the result gives the same case but for
//! spans.

use super::syntax::*;
use std::fmt::Write;

/// The text of a case.
#[must_use]
pub fn print_case(case: &Case) -> String {
    let mut printer = Printer { names: &case.names, out: String::new(), depth: 0 };
    printer.case(case);
    printer.out
}

/// The text of an expression.
#[must_use]
pub fn print_expr(names: &Names, expr: &Expr) -> String {
    let mut printer = Printer { names, out: String::new(), depth: 0 };
    printer.expr(expr, 0);
    printer.out
}

/// The text of statements.
#[must_use]
pub fn print_body(names: &Names, body: &[Stmt]) -> String {
    let mut printer = Printer { names, out: String::new(), depth: 0 };
    for stmt in body {
        printer.stmt(stmt);
    }
    printer.out
}

struct Printer<'a> {
    names: &'a Names,
    out: String,
    depth: usize,
}

fn operator(binary: Binary) -> (&'static str, u8) {
    match binary {
        Binary::Or => ("or", 1),
        Binary::And => ("and", 2),
        Binary::Eq => ("==", 4),
        Binary::Ne => ("!=", 4),
        Binary::Lt => ("<", 4),
        Binary::Le => ("<=", 4),
        Binary::Gt => (">", 4),
        Binary::Ge => (">=", 4),
        Binary::Add => ("+", 5),
        Binary::Sub => ("-", 5),
        Binary::Mul => ("*", 6),
        Binary::Div => ("/", 6),
        Binary::Mod => ("%", 6),
    }
}

impl Printer<'_> {
    fn name(&mut self, sym: Sym) {
        self.out.push_str(self.names.text(sym));
    }

    fn line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out.push_str(&"  ".repeat(self.depth));
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (index, value) in items.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            item(self, value);
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, |printer, expr| printer.expr(expr, 0));
    }

    /// Brackets where the place binds tighter than `level`.
    fn expr(&mut self, expr: &Expr, level: u8) {
        match &expr.kind {
            ExprKind::Int(value) => write!(self.out, "{value}").expect("a string takes all"),
            ExprKind::Bool(value) => write!(self.out, "{value}").expect("a string takes all"),
            ExprKind::Name(sym) => self.name(*sym),
            ExprKind::Access(sym, indices) => {
                self.name(*sym);
                self.out.push('[');
                self.exprs(indices);
                self.out.push(']');
            }
            ExprKind::Apply(sym, arguments) => {
                self.name(*sym);
                self.out.push('(');
                self.exprs(arguments);
                self.out.push(')');
            }
            ExprKind::Builtin(builtin, arguments) => {
                self.out.push_str(match builtin {
                    Builtin::Add => "add(",
                    Builtin::Sub => "sub(",
                    Builtin::Mul => "mul(",
                    Builtin::Max => "max(",
                    Builtin::Min => "min(",
                });
                self.exprs(arguments);
                self.out.push(')');
            }
            ExprKind::Wrap(bits, inner) => {
                write!(self.out, "bv{bits}(").expect("a string takes all");
                self.expr(inner, 0);
                self.out.push(')');
            }
            ExprKind::Negate(inner) => {
                self.out.push('-');
                self.expr(inner, 7);
            }
            ExprKind::Not(inner) => {
                let brackets = level > 3;
                self.out.push_str(if brackets { "(not " } else { "not " });
                self.expr(inner, 3);
                self.out.push_str(if brackets { ")" } else { "" });
            }
            ExprKind::Binary(binary, left, right) => {
                let (text, own) = operator(*binary);
                let brackets = own < level;
                self.out.push_str(if brackets { "(" } else { "" });
                // A comparison takes sums on both sides; other operators group to the left.
                self.expr(left, if own == 4 { 5 } else { own });
                write!(self.out, " {text} ").expect("a string takes all");
                self.expr(right, own + 1);
                self.out.push_str(if brackets { ")" } else { "" });
            }
            ExprKind::Select(condition, then, other) => {
                self.out.push_str(if level > 0 { "(if " } else { "if " });
                self.expr(condition, 0);
                self.out.push_str(" then ");
                self.expr(then, 0);
                self.out.push_str(" else ");
                self.expr(other, 0);
                self.out.push_str(if level > 0 { ")" } else { "" });
            }
        }
    }

    fn ty(&mut self, ty: Type) {
        match ty {
            Type::Int => self.out.push_str("int"),
            Type::Bool => self.out.push_str("bool"),
            Type::Bits(bits) => write!(self.out, "bv{bits}").expect("a string takes all"),
            Type::Elem(sym) => self.name(sym),
        }
    }

    fn range(&mut self, lo: &Expr, hi: &Expr) {
        self.expr(lo, 1);
        self.out.push_str("..");
        self.expr(hi, 1);
    }

    fn vars(&mut self, vars: &[(Sym, Expr, Expr)]) {
        self.list(vars, |printer, (name, lo, hi)| {
            printer.name(*name);
            printer.out.push_str(" in ");
            printer.range(lo, hi);
        });
    }

    fn position(&mut self, word: &str, position: &Position) {
        if position.is_empty() {
            return;
        }
        self.out.push_str(word);
        self.out.push('(');
        self.list(position, |printer, (value, label)| {
            printer.expr(value, 1);
            printer.out.push_str(" @");
            printer.name(*label);
        });
        self.out.push(')');
    }

    fn decl(&mut self, decl: &Decl) {
        self.line();
        self.out.push_str(match (decl.role, decl.ty) {
            (Role::Input, _) => "input ",
            (Role::Output, _) => "output ",
            (Role::State, Type::Bits(_)) => "reg ",
            (Role::State, _) => "buffer ",
        });
        self.name(decl.name);
        if !decl.dims.is_empty() {
            self.out.push('[');
            self.exprs(&decl.dims);
            self.out.push(']');
        }
        self.out.push_str(": ");
        self.ty(decl.ty);
    }

    fn body(&mut self, body: &[Stmt]) {
        self.out.push_str(" {");
        self.depth += 1;
        for stmt in body {
            self.stmt(stmt);
        }
        self.depth -= 1;
        self.line();
        self.out.push('}');
    }

    fn side(&mut self, word: &str, decls: &[Decl], body: &[Stmt]) {
        self.line();
        self.out.push_str(word);
        self.out.push_str(" {");
        self.depth += 1;
        for decl in decls {
            self.decl(decl);
        }
        for stmt in body {
            self.stmt(stmt);
        }
        self.depth -= 1;
        self.line();
        self.out.push('}');
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.line();
        match &stmt.kind {
            StmtKind::Let(name, value) => {
                self.out.push_str("let ");
                self.name(*name);
                self.out.push_str(" := ");
                self.expr(value, 0);
            }
            StmtKind::Assign(name, indices, value) => {
                self.name(*name);
                if !indices.is_empty() {
                    self.out.push('[');
                    self.exprs(indices);
                    self.out.push(']');
                }
                self.out.push_str(" := ");
                self.expr(value, 0);
            }
            StmtKind::Call(name, arguments) => {
                self.out.push_str("call ");
                self.name(*name);
                self.out.push('(');
                self.exprs(arguments);
                self.out.push(')');
            }
            StmtKind::If(condition, then, other) => {
                self.out.push_str("if ");
                self.expr(condition, 1);
                self.body(then);
                if !other.is_empty() {
                    self.out.push_str(" else");
                    self.body(other);
                }
            }
            StmtKind::Loop(inner) => {
                self.out.push_str(match inner.kind {
                    LoopKind::Counted => "for ",
                    LoopKind::Parallel => "parfor ",
                    LoopKind::Hardware => "loop ",
                });
                self.name(inner.counter);
                self.out.push_str(" in ");
                self.range(&inner.lo, &inner.hi);
                if let Some(label) = inner.label {
                    self.out.push_str(" @");
                    self.name(label);
                }
                if !inner.whereby.is_empty() {
                    self.out.push_str(" whereby ");
                    self.list(&inner.whereby, |printer, expr| printer.expr(expr, 1));
                }
                self.body(&inner.body);
                if let Some(until) = &inner.until {
                    self.out.push_str(" until ");
                    self.expr(until, 1);
                }
            }
        }
    }

    fn function(&mut self, function: &Function) {
        self.line();
        self.out.push_str("fun ");
        self.name(function.name);
        self.out.push('(');
        self.list(&function.params, |printer, (name, ty)| {
            printer.name(*name);
            printer.out.push_str(": ");
            printer.ty(*ty);
        });
        self.out.push_str("): ");
        self.ty(function.result);
        if function.commutative {
            self.out.push_str(" commutative");
        }
        if let Some(concrete) = &function.concrete {
            self.out.push_str(" = ");
            self.expr(concrete, 1);
        }
        if let Some(foreign) = &function.foreign {
            write!(self.out, " = hlo \"{foreign}\"").expect("a string takes all");
        }
        if let Some(reads) = &function.reads {
            self.out.push_str(" reads ");
            self.expr(reads, 1);
        }
    }

    fn case(&mut self, case: &Case) {
        if !case.name.is_empty() {
            write!(self.out, "case {}", case.name).expect("a string takes all");
        }
        for ty in &case.types {
            self.line();
            self.out.push_str("type ");
            self.name(ty.name);
            match ty.kind {
                ElemKind::Unsigned => write!(self.out, " = unsigned {}", ty.bits),
                ElemKind::Signed => write!(self.out, " = signed {}", ty.bits),
                ElemKind::Float { exponent } => {
                    write!(self.out, " = float {exponent} {}", ty.bits - 1 - exponent)
                }
            }
            .expect("a string takes all");
        }
        for param in &case.params {
            self.line();
            self.out.push_str("param ");
            self.name(param.name);
            if let Some((lo, hi)) = &param.range {
                self.out.push_str(" in ");
                self.range(lo, hi);
            }
            self.out.push_str(" = ");
            self.expr(&param.value, 0);
        }
        for expr in &case.requires {
            self.line();
            self.out.push_str("require ");
            self.expr(expr, 0);
        }
        for function in &case.functions {
            self.function(function);
        }
        for index in &case.macros {
            self.line();
            self.out.push_str("index ");
            self.name(index.name);
            self.out.push('(');
            self.list(&index.params, |printer, name| printer.name(*name));
            self.out.push_str(") = ");
            self.expr(&index.body, 0);
        }
        self.side("ir", &case.ir.decls, &case.ir.body);
        if let Some(aligned) = &case.aligned {
            self.side("aligned", &aligned.decls, &aligned.body);
        }
        if !case.state.is_empty() || !case.calls.is_empty() {
            self.side("accelerator device", &case.state, &[]);
            // The closing bracket comes after the commands.
            self.out.truncate(self.out.len() - 2);
            self.depth += 1;
            for call in &case.calls {
                self.line();
                self.out.push_str("command ");
                self.name(call.name);
                self.out.push('(');
                self.list(&call.params, |printer, name| printer.name(*name));
                self.out.push(')');
                self.body(&call.body);
            }
            self.depth -= 1;
            self.line();
            self.out.push('}');
        }
        self.side("mapping", &case.mapping.decls, &case.mapping.body);
        self.relate(case);
        self.out.push('\n');
    }

    fn relate(&mut self, case: &Case) {
        if !case.infer && case.relations.is_empty() && case.invariants.is_empty() && case.posts.is_empty() {
            return;
        }
        self.line();
        self.out.push_str("relate {");
        self.depth += 1;
        if case.infer {
            self.line();
            self.out.push_str("infer");
        }
        for relation in &case.relations {
            self.line();
            self.expr(&relation.left, 5);
            self.out.push_str(" == ");
            self.expr(&relation.right, 5);
            if !relation.vars.is_empty() {
                self.out.push_str(" over ");
                self.vars(&relation.vars);
            }
            self.position(" made ", &relation.made);
            self.position(" used ", &relation.used);
            if !relation.at.is_empty() {
                self.out.push_str(" at ");
                self.list(&relation.at, |printer, name| printer.name(*name));
            }
        }
        for invariant in &case.invariants {
            self.line();
            self.out.push_str("invariant at ");
            self.name(invariant.at);
            self.out.push_str(": ");
            self.expr(&invariant.formula, 0);
        }
        for post in &case.posts {
            self.line();
            self.out.push_str("ensure ");
            self.expr(&post.left, 5);
            self.out.push_str(" == ");
            self.expr(&post.right, 5);
            if !post.vars.is_empty() {
                self.out.push_str(" over ");
                self.vars(&post.vars);
            }
        }
        self.depth -= 1;
        self.line();
        self.out.push('}');
    }
}
