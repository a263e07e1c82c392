//! The printed table: what was measured, the ratio, the aim, and whether it is met.

use std::io::Write;

/// One measured ratio.
struct Row {
    what: String,
    figures: String,
    ratio: f64,
    /// `<= 2.5` or `>= 5.0`.
    aim: Option<Aim>,
}

/// Which side of a number is good.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(bound) => ratio <= bound,
            Self::AtLeast(bound) => ratio >= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }
}

/// Rows in the order in which they were measured.
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row and says so, since the next measurement may take a while.
    pub(crate) fn add(&mut self, what: &str, ratio: f64, aim: Option<Aim>, figures: String) {
        drop(writeln!(std::io::stderr(), "measured: {what}"));
        self.rows.push(Row {
            what: what.to_owned(),
            figures,
            ratio,
            aim,
        });
    }

    pub(crate) fn print(&self) {
        let mut out = std::io::stdout().lock();
        let width = self
            .rows
            .iter()
            .map(|row| row.what.chars().count())
            .max()
            .unwrap_or(0);
        for row in &self.rows {
            let (aim, met) = match row.aim {
                Some(aim) if aim.is_met(row.ratio) => (aim.text(), "met"),
                Some(aim) => (aim.text(), "not met"),
                None => (String::new(), ""),
            };
            drop(writeln!(
                out,
                "{:width$}  {:>8.3}  {aim:>7}  {met:<7}  {}",
                row.what, row.ratio, row.figures
            ));
        }
    }
}

/// The middle of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
