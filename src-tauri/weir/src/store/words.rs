//! How the words of a turn are spelled in a column.
//!
//! Rows outlive programs, so the spelling is fixed here and does not follow the names in code.
//!
//! **Invariant**: every word written can be read back, and a word from elsewhere is an error, never a guess.

use rusqlite::Row;
use rusqlite::types::Type;
use weir_core::dialect::mode::{Dialect, ServingMode};

pub(super) fn of_mode(mode: ServingMode) -> &'static str {
    match mode {
        ServingMode::Auto => "auto",
        ServingMode::Lite => "lite",
        ServingMode::Full => "full",
    }
}

pub(super) fn of_dialect(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Lite => "lite",
        Dialect::Full => "full",
    }
}

/// The serving mode in a row's column of that name.
pub(super) fn mode(row: &Row<'_>, column: &str) -> rusqlite::Result<ServingMode> {
    read(row, column, &[ServingMode::Auto, ServingMode::Lite, ServingMode::Full], of_mode)
}

/// The dialect in a row's column of that name.
pub(super) fn dialect(row: &Row<'_>, column: &str) -> rusqlite::Result<Dialect> {
    read(row, column, &[Dialect::Lite, Dialect::Full], of_dialect)
}

fn read<T: Copy>(
    row: &Row<'_>,
    column: &str,
    known: &[T],
    word: fn(T) -> &'static str,
) -> rusqlite::Result<T> {
    let index = row.as_ref().column_index(column)?;
    let found: String = row.get(index)?;
    known.iter().copied().find(|value| word(*value) == found).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            index,
            Type::Text,
            format!("`{found}` is no {column}").into(),
        )
    })
}
