//! Contraction of links and paths after vertices were merged.

use std::hash::{BuildHasher, RandomState};

use super::NO_VERTEX;

/// Removes links that lost an end (`u64::MAX`) or have two equal ends, and duplicates: the first of
/// equal links is kept. Returns the links and, for each input link, the index of the kept link.
/// Unless `directed`, an edge equals its reverse; faces are equal up to rotation.
pub fn contract_links(links: &[u64], width: usize, directed: bool) -> (Vec<u64>, Vec<u32>) {
    let width = width.max(1);
    let count = links.len() / width;
    let mut kept = Vec::new();
    let mut into = Vec::with_capacity(count);
    // Canonical ends of kept links, and their numbers by hash with linear probing.
    let mut keys: Vec<u64> = Vec::new();
    let mut slots = vec![NO_VERTEX; (count * 2).next_power_of_two()];
    // Random seeds resist crafted input; results do not depend on them.
    let random = RandomState::new();
    let seeds = [random.hash_one(0), random.hash_one(1)];
    for ends in links.chunks_exact(width) {
        let is_lost = |end: &u64| *end == u64::from(NO_VERTEX) || *end == u64::MAX;
        let falls = || (1..width).any(|at| ends[..at].contains(&ends[at]));
        if ends.iter().any(is_lost) || falls() {
            into.push(NO_VERTEX);
            continue;
        }
        let next = keys.len() / width;
        keys.extend_from_slice(ends);
        let (known, key) = keys.split_at_mut(next * width);
        match width {
            2 if !directed => key.sort_unstable(),
            3.. => {
                let min = (0..width).min_by_key(|at| ends[*at]).unwrap_or(0);
                key.rotate_left(min);
            }
            _ => {}
        }
        let mut slot = hash(key, seeds) as usize & (slots.len() - 1);
        let number = loop {
            let number = slots[slot];
            if number == NO_VERTEX {
                break next as u32;
            }
            let start = number as usize * width;
            if known[start..start + width] == *key {
                break number;
            }
            slot = (slot + 1) & (slots.len() - 1);
        };
        if number as usize == next {
            slots[slot] = number;
            kept.extend_from_slice(ends);
        } else {
            keys.truncate(next * width);
        }
        into.push(number);
    }
    (kept, into)
}

/// Folds the high half of the product into the low half.
fn hash(key: &[u64], seeds: [u64; 2]) -> u64 {
    key.iter().fold(seeds[0], |hash, end| {
        let wide = u128::from(hash ^ end) * u128::from(seeds[1] | 1);
        (wide as u64) ^ ((wide >> 64) as u64)
    })
}

/// Maps a path to merged vertices, without removed vertices and consecutive repeats.
pub fn contract_path(rows: &[u32], parent: &[u32]) -> Vec<u32> {
    let mut path: Vec<u32> = rows.iter().map(|row| parent[*row as usize]).collect();
    path.retain(|vertex| *vertex != NO_VERTEX);
    path.dedup();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_links_are_dropped_or_deduplicated() {
        let none = u64::MAX;
        let links = [0, 1, 1, 0, 2, 2, 1, none, 1, 2];
        assert_eq!(
            contract_links(&links, 2, false),
            (vec![0, 1, 1, 2], vec![0, 0, NO_VERTEX, NO_VERTEX, 1])
        );
        let (kept, into) = contract_links(&links, 2, true);
        assert_eq!(kept, [0, 1, 1, 0, 1, 2]);
        assert_eq!(into, [0, 1, NO_VERTEX, NO_VERTEX, 2]);
    }

    #[test]
    fn faces_are_equal_up_to_rotation() {
        let faces = [5, 1, 2, 1, 2, 5, 2, 1, 5, 3, 3, 4];
        let (kept, into) = contract_links(&faces, 3, false);
        assert_eq!(kept, [5, 1, 2, 2, 1, 5], "the other side is another face");
        assert_eq!(into, [0, 0, 1, NO_VERTEX]);
    }

    #[test]
    fn paths_drop_consecutive_repeats() {
        let parent = [0, 0, 1, NO_VERTEX, 1, 0];
        assert_eq!(contract_path(&[0, 1, 2, 3, 4, 5], &parent), [0, 1, 0]);
    }
}
