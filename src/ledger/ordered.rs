//! A set of tasks with a value each, in the order of their first insertion. Pure.

use crate::types::TaskId;
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ordered<V> {
    places: HashMap<TaskId, u64>,
    items: BTreeMap<u64, (TaskId, V)>,
    next: u64,
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            items: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<V> Ordered<V> {
    /// A task that is in already keeps its place and gets the new value.
    pub(super) fn insert(&mut self, task: &TaskId, value: V) {
        let place = *self.places.entry(task.clone()).or_insert(self.next);
        self.next = self.next.max(place.saturating_add(1));
        self.items.insert(place, (task.clone(), value));
    }

    pub(super) fn remove(&mut self, task: &TaskId) -> Option<V> {
        let place = self.places.remove(task)?;
        self.items.remove(&place).map(|(_, value)| value)
    }

    pub(super) fn get(&self, task: &TaskId) -> Option<&V> {
        let place = self.places.get(task)?;
        self.items.get(place).map(|(_, value)| value)
    }

    pub(super) fn contains(&self, task: &TaskId) -> bool {
        self.places.contains_key(task)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// In the order of insertion.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&TaskId, &V)> {
        self.items.values().map(|(task, value)| (task, value))
    }

    /// The newest `max` of them, the newest last.
    pub(super) fn newest(&self, max: usize) -> impl Iterator<Item = &TaskId> {
        let skip = self.items.len().saturating_sub(max);
        self.items.values().skip(skip).map(|(task, _)| task)
    }
}
