//! A set of task ids that keeps the order of insertion. Pure.

use crate::types::TaskId;
use std::collections::{BTreeMap, HashMap};

/// No duplicates; a second insertion keeps the first place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OrderedIds {
    places: HashMap<TaskId, u64>,
    order: BTreeMap<u64, TaskId>,
    next: u64,
}

impl OrderedIds {
    pub(super) fn insert(&mut self, id: &TaskId) {
        if !self.places.contains_key(id) {
            self.places.insert(id.clone(), self.next);
            self.order.insert(self.next, id.clone());
            self.next += 1;
        }
    }

    pub(super) fn remove(&mut self, id: &TaskId) {
        if let Some(place) = self.places.remove(id) {
            self.order.remove(&place);
        }
    }

    pub(super) fn contains(&self, id: &TaskId) -> bool {
        self.places.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The newest `max` ids, newest last.
    pub(super) fn newest(&self, max: usize) -> impl Iterator<Item = &TaskId> {
        let skip = self.order.len().saturating_sub(max);
        self.order.values().skip(skip)
    }
}
