//! The most steps that an expression takes for its data, found before it is evaluated.
//!
//! A step is a part of the expression, an element of a loop, or some characters that a function reads. The library evaluates
//! without a limit, so a loop over a loop, or a text that a loop makes longer, could take hours and all memory.

use archon_types::Json;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

/// The characters that count as one unit of a value.
const CHARACTERS: usize = 16;

/// The most units of a text that a function makes of a number, a date or the like.
const MADE: u64 = 32;

/// The most that a value can be.
#[derive(Clone, Copy)]
struct Size {
    /// The units of all its parts.
    units: u64,
    /// The elements, keys or fields.
    count: u64,
    /// The units of an element, a key or a field.
    part: u64,
}

/// A bound of a value.
#[derive(Clone, Copy)]
enum Bound<'a> {
    /// The value itself.
    Known(&'a Json),
    /// Another value.
    Most(Size),
}

/// The variables in scope, the innermost last, and the steps so far.
struct Costs<'a> {
    variables: Vec<(&'a str, Bound<'a>)>,
    steps: u64,
}

/// Returns a number of steps that the evaluation with these variables does not pass.
pub(super) fn most_steps<'a>(expression: &'a IdedExpr, variables: &[(&'a str, &'a Json)]) -> u64 {
    let variables = variables.iter().map(|(name, value)| (*name, Bound::Known(value))).collect();
    let mut costs = Costs { variables, steps: 0 };
    costs.bound(expression);
    costs.steps
}

/// Returns true if no part of an expression is deeper than `most`: each level takes a part of the stack.
pub(super) fn is_within_depth(expression: &IdedExpr, most: usize) -> bool {
    let mut level = vec![expression];
    for _ in 0..most {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(of) => {
            vec![&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts_of(&entry.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|entry| parts_of(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn parts_of(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

impl<'a> Costs<'a> {
    fn bound(&mut self, expression: &'a IdedExpr) -> Bound<'a> {
        self.add(1);
        match &expression.expr {
            Expr::Ident(name) => {
                let mut found = self.variables.iter().rev().filter(|(other, _)| other == name);
                found.next().map_or(Bound::small(), |(_, bound)| *bound)
            }
            Expr::Literal(LiteralValue::String(text)) => Bound::of_units(of_text(text.inner().len())),
            Expr::Literal(LiteralValue::Bytes(bytes)) => Bound::of_units(of_text(bytes.inner().len())),
            Expr::Literal(_) | Expr::Unspecified => Bound::small(),
            Expr::Select(select) => {
                let operand = self.bound(&select.operand);
                if select.test { Bound::small() } else { operand.field(&select.field) }
            }
            Expr::Call(call) => self.bound_of_call(call),
            Expr::Comprehension(of) => self.bound_of_loop(of),
            Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => {
                let parts = children(expression).into_iter().map(|part| self.bound(part).size().units);
                Bound::Most(Size::of_parts(parts))
            }
        }
    }

    fn bound_of_call(&mut self, call: &'a CallExpr) -> Bound<'a> {
        let parts = call.target.as_deref().into_iter().chain(&call.args);
        let parts: Vec<Bound<'a>> = parts.map(|part| self.bound(part)).collect();
        let units = || parts.iter().map(|part| part.size().units);
        match call.func_name.as_str() {
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => Bound::small(),
            operators::CONDITIONAL => {
                Bound::Most(parts.iter().skip(1).map(Bound::size).fold(Size::default(), Size::or))
            }
            // A comparison ends where the shorter of the two ends.
            operators::EQUALS | operators::NOT_EQUALS => {
                self.add(units().min().unwrap_or_default());
                Bound::small()
            }
            operators::INDEX => match (parts.first(), call.args.last().map(|key| &key.expr)) {
                (Some(of), Some(Expr::Literal(LiteralValue::String(key)))) => of.field(key.inner()),
                (of, _) => Bound::of_units(of.map_or(1, |of| of.size().part)),
            },
            operators::ADD => {
                let sum = parts.iter().map(Bound::size).fold(Size::default(), Size::and);
                self.add(sum.units);
                Bound::Most(sum)
            }
            _ => {
                let sum = units().fold(0, u64::saturating_add);
                self.add(sum);
                Bound::of_units(sum.saturating_add(MADE))
            }
        }
    }

    fn bound_of_loop(&mut self, of: &'a ComprehensionExpr) -> Bound<'a> {
        let range = self.bound(&of.iter_range).size();
        let begin = self.bound(&of.accu_init).size();
        let element = Bound::of_units(range.part);
        let (before, outer) = (std::mem::take(&mut self.steps), self.variables.len());
        self.variables.push((&of.accu_var, Bound::Most(begin)));
        self.variables.push((&of.iter_var, element));
        self.variables.extend(of.iter_var2.iter().map(|name| (name.as_str(), element)));
        self.bound(&of.loop_cond);
        let first = self.bound(&of.loop_step).size();
        let one = std::mem::replace(&mut self.steps, before);
        self.add(range.units);
        self.add(one.saturating_mul(range.count));
        self.variables.truncate(outer);
        self.variables.push((&of.accu_var, Bound::Most(begin.after_rounds(first, range.count))));
        let result = self.bound(&of.result);
        self.variables.truncate(outer);
        result
    }

    fn add(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { units: 1, count: 0, part: 1 }
    }
}

impl Size {
    fn of_parts(units: impl Iterator<Item = u64>) -> Self {
        units.fold(Self::default(), |size, part| Self {
            units: size.units.saturating_add(part),
            count: size.count + 1,
            part: size.part.max(part),
        })
    }

    /// The size of two values one after the other.
    fn and(self, other: Self) -> Self {
        let units = self.units.saturating_add(other.units);
        Self { units, count: self.count.saturating_add(other.count), part: self.part.max(other.part) }
    }

    /// The size of one of two values.
    fn or(self, other: Self) -> Self {
        let (units, count) = (self.units.max(other.units), self.count.max(other.count));
        Self { units, count, part: self.part.max(other.part) }
    }

    /// The size after the rounds of a loop: each adds at most as much as the first one.
    fn after_rounds(self, first: Self, rounds: u64) -> Self {
        let end = |begin: u64, first: u64| first.saturating_sub(begin).saturating_mul(rounds).max(begin);
        let units = end(self.units, first.units).saturating_add(self.units);
        let count = end(self.count, first.count).saturating_add(self.count);
        Self { units, count, part: self.part.max(first.part) }
    }
}

impl<'a> Bound<'a> {
    /// Any value of this many units: it may be one long text, or a list of short ones.
    fn of_units(units: u64) -> Self {
        Self::Most(Size { units, count: units, part: units })
    }

    /// A number, or true or false.
    fn small() -> Self {
        Self::of_units(1)
    }

    fn size(&self) -> Size {
        match self {
            Self::Known(Json::Array(items)) => Size::of_parts(items.iter().map(units_of)),
            Self::Known(Json::Object(fields)) => {
                let parts = fields.iter().map(|(name, value)| of_text(name.len()) + units_of(value));
                Size::of_parts(parts)
            }
            Self::Known(value) => Size { units: units_of(value), ..Size::default() },
            Self::Most(size) => *size,
        }
    }

    fn field(&self, name: &str) -> Self {
        match self {
            Self::Known(Json::Object(fields)) => fields.get(name).map_or(Self::small(), Self::Known),
            Self::Known(_) => Self::small(),
            Self::Most(size) => Self::of_units(size.part),
        }
    }
}

fn units_of(value: &Json) -> u64 {
    match value {
        Json::String(text) => of_text(text.len()),
        Json::Array(items) => items.iter().map(units_of).fold(1, u64::saturating_add),
        Json::Object(fields) => {
            let units = fields.iter().map(|(name, value)| of_text(name.len()) + units_of(value));
            units.fold(1, u64::saturating_add)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => 1,
    }
}

fn of_text(bytes: usize) -> u64 {
    1 + (bytes / CHARACTERS) as u64
}
