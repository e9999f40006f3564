//! From a byte position in a TOML file to its line and to the key that stands there.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The line of a position, from 1.
pub(super) fn line_of(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|&byte| byte == b'\n').count() + 1
}

/// The dotted key at a position, with indices for arrays of tables; empty when there is none.
pub(super) fn key_at(text: &str, position: usize) -> String {
    let Ok(table) = DeTable::parse(text) else { return String::new() };
    let mut found = Found { position, best: None };
    found.table(table.get_ref(), "");
    found.best.map(|(_, path)| path).unwrap_or_default()
}

struct Found {
    position: usize,
    /// The narrowest stretch of text around the position so far, and its key.
    best: Option<(usize, String)>,
}

impl Found {
    fn table(&mut self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            self.consider(&key.span(), &path);
            self.value(value.get_ref(), value.span(), &path);
        }
    }

    fn value(&mut self, value: &DeValue<'_>, span: Range<usize>, path: &str) {
        self.consider(&span, path);
        match value {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(item.get_ref(), item.span(), &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn consider(&mut self, span: &Range<usize>, path: &str) {
        let narrower = self.best.as_ref().is_none_or(|(width, _)| span.len() <= *width);
        if span.contains(&self.position) && narrower {
            self.best = Some((span.len(), path.to_owned()));
        }
    }
}
