//! A persistent map from small numbers to values: a copy shares all with its original, and a change copies the way to one
//! place and nothing else.
//!
//! Each part knows the newest revision in it, so what changed since a revision is found without looking at the rest. It is
//! made for slots, which are counted from nought: an index needs neither hashing nor comparing, and no crate for it.

use std::sync::Arc;

/// How many bits of a slot one level takes.
const LEVEL_BITS: u32 = 4;
/// How many places a node has.
const WIDTH: usize = 1 << LEVEL_BITS;

/// A value and the revision that put it there.
#[derive(Debug, Clone)]
pub(crate) struct Placed<T> {
    pub(crate) revision: u64,
    pub(crate) value: T,
}

/// The map.
#[derive(Debug, Clone)]
pub(crate) struct Shelf<T> {
    root: Option<Arc<Node<T>>>,
    /// How many levels there are below the root.
    height: u32,
}

#[derive(Debug, Clone)]
struct Node<T> {
    /// The newest revision below.
    newest: u64,
    places: Places<T>,
}

#[derive(Debug, Clone)]
enum Places<T> {
    Branch([Option<Arc<Node<T>>>; WIDTH]),
    Leaf([Option<Placed<T>>; WIDTH]),
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { root: None, height: 0 }
    }
}

impl<T: Clone> Node<T> {
    fn empty(height: u32) -> Self {
        let places =
            if height == 0 { Places::Leaf(Default::default()) } else { Places::Branch(Default::default()) };
        Node { newest: 0, places }
    }
}

impl<T: Clone> Shelf<T> {
    /// What is at a slot.
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        if !holds(self.height, slot) {
            return None;
        }
        let mut node = self.root.as_deref()?;
        let mut level = self.height;
        loop {
            match &node.places {
                Places::Leaf(cells) => return cells[place(slot, 0)].as_ref().map(|placed| &placed.value),
                Places::Branch(children) => node = children[place(slot, level)].as_deref()?,
            }
            level = level.saturating_sub(1);
        }
    }

    /// The place of a slot, to be changed at a revision. Copies the nodes on the way that somebody else holds, too.
    pub(crate) fn place_mut(&mut self, slot: u32, revision: u64) -> &mut Option<Placed<T>> {
        let mut root = self.root.take();
        while !holds(self.height, slot) {
            root = root.map(|below| {
                let mut children: [Option<Arc<Node<T>>>; WIDTH] = Default::default();
                let newest = below.newest;
                children[0] = Some(below);
                Arc::new(Node { newest, places: Places::Branch(children) })
            });
            self.height += 1;
        }
        let height = self.height;
        let root = self.root.insert(root.unwrap_or_else(|| Arc::new(Node::empty(height))));
        descend(root, height, slot, revision)
    }

    /// Visits what was placed after a revision, in the order of slots. All of it is after nought.
    pub(crate) fn since(&self, revision: u64, visit: &mut dyn FnMut(u32, &Placed<T>)) {
        if let Some(root) = &self.root {
            walk(root, self.height, 0, revision, visit);
        }
    }
}

fn descend<T: Clone>(
    node: &mut Arc<Node<T>>,
    height: u32,
    slot: u32,
    revision: u64,
) -> &mut Option<Placed<T>> {
    let node = Arc::make_mut(node);
    node.newest = node.newest.max(revision);
    match &mut node.places {
        Places::Leaf(cells) => &mut cells[place(slot, 0)],
        Places::Branch(children) => {
            let below = height.saturating_sub(1);
            let child = children[place(slot, height)].get_or_insert_with(|| Arc::new(Node::empty(below)));
            descend(child, below, slot, revision)
        }
    }
}

fn walk<T>(node: &Node<T>, height: u32, first: u32, revision: u64, visit: &mut dyn FnMut(u32, &Placed<T>)) {
    if node.newest <= revision {
        return;
    }
    match &node.places {
        Places::Leaf(cells) => {
            for (slot, placed) in (first..).zip(cells) {
                if let Some(placed) = placed.as_ref().filter(|placed| placed.revision > revision) {
                    visit(slot, placed);
                }
            }
        }
        Places::Branch(children) => {
            for (position, child) in (0u32..).zip(children) {
                if let Some(child) = child {
                    walk(child, height - 1, first | (position << (LEVEL_BITS * height)), revision, visit);
                }
            }
        }
    }
}

/// Whether a tree of this height has a place for the slot.
fn holds(height: u32, slot: u32) -> bool {
    u64::from(slot) >> (LEVEL_BITS * (height + 1)) == 0
}

/// Where a slot goes on at a level.
fn place(slot: u32, level: u32) -> usize {
    (slot >> (LEVEL_BITS * level)) as usize & (WIDTH - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn nodes<T>(node: &Arc<Node<T>>, found: &mut HashSet<*const Node<T>>) {
        found.insert(Arc::as_ptr(node));
        if let Places::Branch(children) = &node.places {
            children.iter().flatten().for_each(|child| nodes(child, found));
        }
    }

    fn put<T: Clone>(shelf: &mut Shelf<T>, slot: u32, revision: u64, value: T) {
        *shelf.place_mut(slot, revision) = Some(Placed { revision, value });
    }

    // clause: D16
    #[test]
    fn a_change_among_a_hundred_thousand_slots_copies_the_way_to_one_of_them() {
        let mut shelf = Shelf::default();
        for slot in 0..100_000 {
            put(&mut shelf, slot, 1, slot);
        }
        let before = shelf.clone();
        put(&mut shelf, 77_777, 2, 0);
        let (mut old, mut new) = (HashSet::new(), HashSet::new());
        nodes(before.root.as_ref().unwrap(), &mut old);
        nodes(shelf.root.as_ref().unwrap(), &mut new);
        assert!(old.len() > 6_000);
        assert_eq!(new.difference(&old).count(), 5, "one node a level");
        assert_eq!((before.get(77_777), shelf.get(77_777)), (Some(&77_777), Some(&0)));
        let mut changed = Vec::new();
        shelf.since(1, &mut |slot, placed| changed.push((slot, placed.value)));
        assert_eq!(changed, [(77_777, 0)]);
    }

    fn config() -> ProptestConfig {
        let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
            Ok("soak") => 5_000,
            Ok("quick") => 32,
            _ => 128,
        };
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn a_shelf_is_a_map(changes in prop::collection::vec((0u32..5_000, any::<u16>()), 0..60), slots in prop::collection::vec(0u32..6_000, 20)) {
            let (mut shelf, mut map) = (Shelf::default(), BTreeMap::new());
            for (revision, (slot, value)) in (1u64..).zip(&changes) {
                put(&mut shelf, *slot, revision, *value);
                map.insert(*slot, (*value, revision));
            }
            for slot in slots.iter().chain(map.keys()) {
                prop_assert_eq!(shelf.get(*slot), map.get(slot).map(|(value, _)| value));
            }
            for since in 0..=changes.len() as u64 {
                let mut found = Vec::new();
                shelf.since(since, &mut |slot, placed| found.push((slot, placed.value)));
                let expected: Vec<_> =
                    map.iter().filter(|(_, (_, at))| *at > since).map(|(slot, (value, _))| (*slot, *value)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
