//! Builds the SQL conditions of filters, for every kind of database.

use archon_types::{Collection, Listing, MemoryError, MemoryFilter, MemoryOrder, Validity};

use super::{number, past_all_of, range};

/// The parts of a filter's conditions that differ between databases.
pub(crate) trait Dialect: Sized {
    /// The type of a parameter's value.
    type Value: From<String> + From<i64>;
    /// The SQL condition that is true if the columns of `entries e` that filters compare are undamaged.
    const SOUND: &'static str;
    /// The SQL of the column `e.key`, in a form that is compared byte by byte.
    const KEY: &'static str = "e.key";

    /// Returns false for a text that the database cannot store, so that no entry has it.
    fn is_storable(_: &str) -> bool {
        true
    }

    /// Returns the placeholder of the parameter with this number, from 1.
    fn placeholder(number: usize) -> String;

    /// Adds the conditions on ids and on the session, which have indexes, and the condition on the vector,
    /// whose damage is checked separately from the damage of the other columns.
    fn add_indexed(conditions: &mut Conditions<Self>, filter: &MemoryFilter);

    /// Adds the conditions on metadata, kind and trust level, for which no indexes exist.
    fn add_compared(conditions: &mut Conditions<Self>, filter: &MemoryFilter);
}

/// The treatment of damaged rows: rows in which a column that filters compare is damaged, so that it is
/// unknown if they meet the conditions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// For lists and searches: a damaged row needs to meet only the conditions with an index (collection, id,
    /// key and session), so that the row is read and its damage is found.
    Admitted,
    /// For changes: a damaged row must meet all conditions, like every other row, so that no row is deleted
    /// that the filter may not mean.
    Compared,
}

/// Conditions on `entries e`, joined by AND, with the values of their parameters.
pub(crate) struct Conditions<D: Dialect> {
    pub(crate) sql: String,
    pub(crate) values: Vec<D::Value>,
}

impl<D: Dialect> Conditions<D> {
    /// Builds the conditions of a filter. Every query begins with the condition on the collection.
    pub(crate) fn of(scope: &Collection, filter: &MemoryFilter, damage: Damage) -> Result<Self, MemoryError> {
        let mut conditions = Self { sql: "TRUE".to_owned(), values: Vec::new() };
        let range = range(scope, filter)?;
        if let Some(to) = range.to {
            let name = conditions.value(range.name);
            // With one collection, an index may already have the order.
            if to == range.from {
                conditions.and(&format!("e.collection = {name}"));
            } else {
                let (from, to) = (conditions.value(range.from), conditions.value(to));
                let within = format!("e.collection >= {from} AND e.collection < {to}");
                conditions.and(&format!("(e.collection = {name} OR ({within}))"));
            }
        }
        conditions.add_keys(filter);
        D::add_indexed(&mut conditions, filter);
        let indexed = std::mem::replace(&mut conditions.sql, "TRUE".to_owned());
        D::add_compared(&mut conditions, filter);
        conditions.add_times(filter);
        let compared = std::mem::replace(&mut conditions.sql, indexed);
        if compared != "TRUE" {
            conditions.and(&match damage {
                Damage::Admitted => format!("(({compared}) OR NOT ({}))", D::SOUND),
                Damage::Compared => compared,
            });
        }
        Ok(conditions)
    }

    pub(crate) fn and(&mut self, sql: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
    }

    /// Adds the value of a parameter, and returns the placeholder of the parameter.
    pub(crate) fn value(&mut self, value: impl Into<D::Value>) -> String {
        self.values.push(value.into());
        D::placeholder(self.values.len())
    }

    fn add_keys(&mut self, filter: &MemoryFilter) {
        if filter.key.iter().chain(&filter.key_prefix).any(|key| !D::is_storable(key)) {
            return self.and("FALSE");
        }
        let column = D::KEY;
        if let Some(key) = &filter.key {
            let key = self.value(key.clone());
            self.and(&format!("e.key = {key}"));
        }
        if let Some(prefix) = &filter.key_prefix {
            // A range, so that the index of keys can be used.
            let from = self.value(prefix.clone());
            self.and(&format!("{column} >= {from}"));
            if let Some(past) = past_all_of(prefix) {
                let past = self.value(past);
                self.and(&format!("{column} < {past}"));
            }
        }
    }

    fn add_times(&mut self, filter: &MemoryFilter) {
        if let Some(from) = filter.from {
            let from = self.value(number(from));
            self.and(&format!("e.timestamp >= {from}"));
        }
        if let Some(until) = filter.until {
            let until = self.value(number(until));
            self.and(&format!("e.timestamp < {until}"));
        }
        match filter.validity {
            Validity::Any => {}
            Validity::At(time) => {
                let (from, to) = (self.value(number(time)), self.value(number(time)));
                self.and(&format!("(e.valid_from IS NULL OR e.valid_from <= {from})"));
                self.and(&format!("(e.valid_to IS NULL OR {to} < e.valid_to)"));
            }
            _ => self.and("e.valid_to IS NULL"),
        }
    }

    /// Adds the condition on the position at which a page begins, and returns the end of the statement for
    /// the page. The statement gives one row more than the page has, which shows that another page follows.
    pub(crate) fn end_of_page(&mut self, listing: &Listing) -> String {
        let (past, order) = match listing.order {
            MemoryOrder::First => (">", "ASC"),
            MemoryOrder::Latest => ("<", "DESC"),
        };
        if let Some(after) = listing.after {
            let after = self.value(i64::try_from(after).unwrap_or(i64::MAX));
            self.and(&format!("e.position {past} {after}"));
        }
        let limit = self.value(i64::try_from(listing.limit).unwrap_or(i64::MAX).saturating_add(1));
        format!("WHERE {} ORDER BY e.position {order} LIMIT {limit}", self.sql)
    }
}
