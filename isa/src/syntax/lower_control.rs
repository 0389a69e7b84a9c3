//! Blocks of semantics to the model: statements in their order, `if` and `repeat`, and which names are known where.

use super::ast::{ArgsAst, ComputationAst, Name, StepAst, StmtAst};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::lower::Faults;
use super::lower_stmt::Block;
use super::parser::Parsed;
use super::scope::{RESERVED, Scope};
use crate::control::{Step, Structured};
use crate::expr::{Cond, Expr};
use crate::model::{Computation, Stmt};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A lowered computation and where each of its statements stands.
#[derive(Default)]
pub(super) struct Lowered {
    pub computation: Computation,
    pub structured: Option<Structured>,
    pub spans: Vec<Span>,
}

/// A step over the statements of a [`Block`], by their numbers.
enum Numbered {
    Stmt(usize),
    If(Cond, Vec<Numbered>, Vec<Numbered>),
    Repeat(String, Expr, Vec<Numbered>),
}

/// Lowering of one instruction's block.
struct Lowering<'a> {
    block: Block,
    inputs: usize,
    faults: &'a mut Faults,
    /// Names with a fault; statements that use one are not judged.
    lost: Vec<&'a str>,
    roots: Vec<usize>,
}

/// Lowers a block; `inputs` is the number of the instruction's operands. `None` after noting what is wrong in
/// `faults`: unknown names, wrong attributes and constants, statement by statement.
pub(super) fn lower_computation(
    ast: &ComputationAst,
    scope: &Scope,
    inputs: usize,
    faults: &mut Faults,
) -> Option<Lowered> {
    let before = faults.0.len();
    let block = Block::new(scope.clone());
    let mut lowering = Lowering { block, inputs, faults, lost: Vec::new(), roots: Vec::new() };
    let steps = lowering.steps(&ast.steps);
    let Lowering { mut block, faults, lost, mut roots, .. } = lowering;
    if let Some(returns) = &ast.returns {
        if ast.steps.iter().any(|s| matches!(s, StepAst::Stmt(s) if s.root)) {
            let problem = Problem::Repeated { what: "root", of: "the computation".to_owned() };
            faults.0.push(Diagnostic::error(ast.span, problem));
        }
        let known = returns.iter().filter(|name| !lost.contains(&name.text.as_str()));
        roots = known.filter_map(|name| faults.keep(block.operand(name))).collect();
    }
    if faults.0.len() > before {
        return None;
    }
    if steps.iter().all(|s| matches!(s, Numbered::Stmt(_))) {
        block.drop_spare(&mut roots);
        let computation = Computation { stmts: block.stmts, roots };
        return Some(Lowered { computation, structured: None, spans: block.spans });
    }
    let mut variables: Vec<String> = Vec::new();
    for stmt in &block.stmts {
        if !variables.contains(&stmt.name) {
            variables.push(stmt.name.clone());
        }
    }
    let variable = |at: usize| variables.iter().position(|v| *v == block.stmts[at].name).unwrap_or(at);
    let roots = roots.into_iter().map(variable).collect();
    let steps = named(&steps, &block.stmts, &variable);
    let structured = Some(Structured { steps, roots, variables: variables.clone() });
    Some(Lowered { computation: Computation::default(), structured, spans: block.spans })
}

/// Numbers of statements replaced by the statements, their operands by variables.
fn named(steps: &[Numbered], stmts: &[Stmt], variable: &dyn Fn(usize) -> usize) -> Vec<Step> {
    let one = |step: &Numbered| match step {
        Numbered::Stmt(at) => {
            let mut stmt = stmts[*at].clone();
            stmt.operands.iter_mut().for_each(|o| *o = variable(*o));
            Step::Assign { variable: variable(*at), stmt }
        }
        Numbered::If(cond, then, otherwise) => Step::If {
            cond: cond.clone(),
            then: named(then, stmts, variable),
            otherwise: named(otherwise, stmts, variable),
        },
        Numbered::Repeat(name, count, body) => {
            Step::Repeat { name: name.clone(), count: count.clone(), body: named(body, stmts, variable) }
        }
    };
    steps.iter().map(one).collect()
}

impl<'a> Lowering<'a> {
    fn steps(&mut self, list: &'a [StepAst]) -> Vec<Numbered> {
        let mut out = Vec::new();
        for step in list {
            match step {
                StepAst::Stmt(stmt) => self.stmt(stmt, &mut out),
                StepAst::If { cond, then, otherwise } => {
                    let cond = self.faults.keep(self.block.scope.cond(cond));
                    let before = self.block.visible.clone();
                    let then = self.nested(then);
                    let mut after = std::mem::replace(&mut self.block.visible, before.clone());
                    let otherwise = self.nested(otherwise);
                    // Known behind it is what both branches know; of two values of one name either stands for both.
                    let last = std::mem::take(&mut self.block.visible);
                    after.retain(|name, _| last.contains_key(name));
                    for (name, at) in &mut after {
                        if before.get(name) == Some(at) {
                            *at = last.get(name).copied().unwrap_or(*at);
                        }
                    }
                    self.block.visible = after;
                    out.extend(cond.map(|cond| Numbered::If(cond, then, otherwise)));
                }
                StepAst::Repeat { name, count, body } => {
                    let count = self.faults.keep(self.block.scope.expr(count));
                    let inner = self.faults.keep(self.with_variable(name));
                    let outer = Rc::clone(&self.block.scope);
                    self.block.scope = inner.unwrap_or_else(|| Rc::clone(&outer));
                    let before = self.block.visible.clone();
                    let body = self.nested(body);
                    self.block.visible.retain(|name, _| before.contains_key(name));
                    self.block.scope = outer;
                    out.extend(count.map(|count| Numbered::Repeat(name.text.clone(), count, body)));
                }
            }
        }
        out
    }

    fn nested(&mut self, list: &'a [StepAst]) -> Vec<Numbered> {
        self.block.assigned.push(Vec::new());
        let steps = self.steps(list);
        self.block.assigned.pop();
        steps
    }

    fn with_variable(&self, name: &Name) -> Parsed<Rc<Scope>> {
        let mut scope = Scope::clone(&self.block.scope);
        let problem = if RESERVED.contains(&name.text.as_str()) {
            Problem::ReservedName(name.text.clone())
        } else if scope.names().any(|n| n == name.text) {
            Problem::DuplicateName { what: "name", name: name.text.clone() }
        } else {
            scope.variables.push(name.text.clone());
            return Ok(Rc::new(scope));
        };
        Err(Diagnostic::error(name.span, problem))
    }

    fn stmt(&mut self, stmt: &'a StmtAst, out: &mut Vec<Numbered>) {
        let uses_lost = match &stmt.args {
            ArgsAst::Operands(names) => names.iter().any(|n| self.lost.contains(&n.text.as_str())),
            _ => false,
        };
        let first = self.block.stmts.len();
        let lowered = if uses_lost { None } else { self.faults.keep(self.block.stmt(stmt, self.inputs)) };
        match lowered {
            Some(at) => {
                out.extend((first..=at).map(Numbered::Stmt));
                if stmt.root {
                    self.roots.push(at);
                }
            }
            None => self.lost.push(&stmt.name.text),
        }
    }
}

impl Block {
    /// The statement that gives a name its value here; of several on different paths, the last in the text.
    pub(super) fn operand(&self, name: &Name) -> Parsed<usize> {
        self.visible.get(&name.text).copied().ok_or_else(|| {
            let nearest = nearest(&name.text, self.visible.keys().map(String::as_str));
            let problem = Problem::UnknownName { what: "value", name: name.text.clone(), nearest };
            Diagnostic::error(name.span, problem)
        })
    }

    /// A name is assigned once per block; an inner block may give an outer name a new value.
    pub(super) fn may_assign(&self, name: &Name) -> Parsed<()> {
        let taken = match self.assigned.as_slice() {
            [] => self.visible.contains_key(&name.text),
            [.., innermost] => innermost.contains(&name.text),
        };
        // A name of a branch that is gone: it may be taken again, for the same value on another path or a new one.
        if taken {
            let problem = Problem::DuplicateName { what: "value", name: name.text.clone() };
            return Err(Diagnostic::error(name.span, problem));
        }
        Ok(())
    }

    pub(super) fn push(&mut self, stmt: Stmt, span: Span) -> usize {
        let at = self.stmts.len();
        self.visible.insert(stmt.name.clone(), at);
        if let Some(innermost) = self.assigned.last_mut() {
            innermost.push(stmt.name.clone());
        }
        self.stmts.push(stmt);
        self.spans.push(span);
        at
    }

    pub(super) fn new(scope: Scope) -> Block {
        Block {
            scope: Rc::new(scope),
            stmts: Vec::new(),
            spans: Vec::new(),
            spare: Vec::new(),
            visible: BTreeMap::new(),
            assigned: Vec::new(),
        }
    }
}
