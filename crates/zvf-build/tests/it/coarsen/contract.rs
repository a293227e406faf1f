//! Contraction of links compared with brute force.

use proptest::{collection::vec, prelude::*};
use zvf_build::coarsen::{NO_VERTEX, contract_links};

/// Returns whether one link is a rotation of the other.
fn is_same(a: &[u64], b: &[u64], directed: bool) -> bool {
    let turns = match a.len() {
        2 if directed => 1,
        count => count,
    };
    (0..turns).any(|turn| {
        let mut turned = a.to_vec();
        turned.rotate_left(turn);
        turned == b
    })
}

proptest! {
    #[test]
    fn links_equal_brute_force(
        width in 2_usize..5,
        rows in vec(prop_oneof![8 => 0_u64..9, 1 => Just(u64::MAX), 1 => Just(1 << 40)], 0..400),
        directed: bool,
    ) {
        let links = &rows[..rows.len() / width * width];
        let mut expected: Vec<Vec<u64>> = Vec::new();
        let mut numbers = Vec::new();
        for ends in links.chunks_exact(width) {
            let is_lost = ends.contains(&u64::MAX);
            let falls = (0..width).any(|at| ends[at + 1..].contains(&ends[at]));
            if is_lost || falls {
                numbers.push(NO_VERTEX);
                continue;
            }
            let known = expected.iter().position(|known| is_same(ends, known, directed));
            numbers.push(known.unwrap_or(expected.len()) as u32);
            if known.is_none() {
                expected.push(ends.to_vec());
            }
        }
        let (kept, into) = contract_links(links, width, directed);
        assert_eq!(kept, expected.concat());
        assert_eq!(into, numbers);
    }
}
