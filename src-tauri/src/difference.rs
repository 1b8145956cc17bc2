//! The steps from the menu that is there to the menu that is wanted.
//!
//! Pure: entries are matched by key and kind. A kept entry may have another text; [`crate::tray`] sees to that. Only the text of
//! a submenu cannot be set where it stands (the menu library packs it into a box on Linux, and then does not find it), so
//! a submenu with another text is another submenu.
//!
//! **Invariant**: two menus whose keys and submenus' texts agree need no step but keeping.

use std::mem::{Discriminant, discriminant};

use crate::menu::{Entry, Line};

/// What makes two entries the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Same {
    key: String,
    kind: Discriminant<Line>,
    /// The text of a submenu.
    text: Option<String>,
}

pub(crate) fn same(entry: &Entry) -> Same {
    let text = match &entry.line {
        Line::Sub { label, .. } => Some(label.clone()),
        _ => None,
    };
    Same { key: entry.key.clone(), kind: discriminant(&entry.line), text }
}

/// One step; a place counts from the top of the menu as the steps before left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Remove(usize),
    /// The wanted entry of this place comes in at this place.
    Insert(usize),
    /// The entry of this place stays.
    Keep(usize),
}

/// The steps that make `there` into `wanted`.
pub(crate) fn steps(mut there: Vec<Same>, wanted: &[Same]) -> Vec<Step> {
    let mut steps = Vec::new();
    for place in (0..there.len()).rev() {
        if !wanted.contains(&there[place]) {
            there.remove(place);
            steps.push(Step::Remove(place));
        }
    }
    for (place, entry) in wanted.iter().enumerate() {
        if there.get(place) == Some(entry) {
            steps.push(Step::Keep(place));
            continue;
        }
        // One that stands further down moves up by coming in anew.
        if let Some(later) = there.iter().skip(place).position(|other| other == entry) {
            there.remove(place + later);
            steps.push(Step::Remove(place + later));
        }
        there.insert(place, entry.clone());
        steps.push(Step::Insert(place));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(keys: &str) -> Vec<Same> {
        let entry = |key: &str| Entry { key: key.to_owned(), line: Line::Gap };
        keys.split_whitespace().map(|key| same(&entry(key))).collect()
    }

    /// Takes the steps and gives back the keys.
    fn taken(from: &str, to: &str) -> (String, usize) {
        let (mut there, wanted) = (menu(from), menu(to));
        let steps = steps(there.clone(), &wanted);
        for step in &steps {
            match *step {
                Step::Remove(place) => drop(there.remove(place)),
                Step::Insert(place) => there.insert(place, wanted[place].clone()),
                Step::Keep(place) => assert_eq!(there[place], wanted[place]),
            }
        }
        let keys: Vec<_> = there.into_iter().map(|entry| entry.key).collect();
        let changes = steps.iter().filter(|step| !matches!(step, Step::Keep(_))).count();
        (keys.join(" "), changes)
    }

    #[test]
    fn the_same_menu_is_left_alone() {
        assert_eq!(taken("a b c", "a b c"), ("a b c".to_owned(), 0));
    }

    #[test]
    fn only_what_comes_or_goes_is_touched() {
        for (from, to, changes) in [
            ("a b c", "a c", 1),
            ("a c", "a b c", 1),
            ("a b", "a b c d", 2),
            ("a x b", "a y b", 2),
            ("", "a b", 2),
            ("a b", "", 2),
            ("a b c", "c a b", 2),
        ] {
            assert_eq!(taken(from, to), (to.to_owned(), changes), "{from} -> {to}");
        }
    }

    #[test]
    fn a_submenu_stays_while_only_its_entries_change() {
        let sub = |label: &str, entries| {
            same(&Entry {
                key: "m".to_owned(),
                line: Line::Sub { label: label.to_owned(), entries },
            })
        };
        let entry = Entry { key: "e".to_owned(), line: Line::Gap };
        let there = vec![sub("m (auto)", Vec::new())];
        assert_eq!(steps(there.clone(), &[sub("m (auto)", vec![entry])]), [Step::Keep(0)]);
        let other = steps(there, &[sub("m (full)", Vec::new())]);
        assert_eq!(other, [Step::Remove(0), Step::Insert(0)]);
    }

    #[test]
    fn another_kind_under_the_same_key_is_another_entry() {
        let text = Entry { key: "a".to_owned(), line: Line::Text("a".to_owned()) };
        assert_eq!(steps(menu("a"), &[same(&text)]), [Step::Remove(0), Step::Insert(0)]);
    }
}
