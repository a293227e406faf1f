//! Nearest-neighbour search among points, segments or triangles, in a tree of boxes.

use super::super::distance::{off, square};
use super::Simplices;

/// Number of elements of a leaf.
const LEAF: usize = 4;

/// Balanced tree: each range is split in the middle along the longest axis of its box, down to
/// leaves.
pub(super) struct Tree<'a> {
    shape: Simplices<'a>,
    /// Elements in leaf order.
    elements: Vec<&'a [u32]>,
    /// Lower and upper corner of each node's box. The children of node n are 2n + 1 and 2n + 2.
    boxes: Vec<f64>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(shape: &Simplices<'a>) -> Self {
        let mut tree = Self {
            shape: *shape,
            elements: shape.iter().collect(),
            boxes: Vec::new(),
        };
        let mut elements = std::mem::take(&mut tree.elements);
        if !elements.is_empty() {
            tree.build(0, &mut elements);
        }
        tree.elements = elements;
        tree
    }

    fn build(&mut self, node: usize, elements: &mut [&'a [u32]]) {
        let axes = self.shape.axes;
        let start = node * 2 * axes;
        if self.boxes.len() < start + 2 * axes {
            self.boxes.resize(start + 2 * axes, 0.0);
        }
        let (mut widest, mut extent) = (0, f64::NEG_INFINITY);
        for axis in 0..axes {
            let (mut lower, mut upper) = (f64::INFINITY, f64::NEG_INFINITY);
            for row in elements.iter().copied().flatten() {
                let number = self.shape.position(*row)[axis];
                lower = lower.min(number);
                upper = upper.max(number);
            }
            self.boxes[start + axis] = lower;
            self.boxes[start + axes + axis] = upper;
            if upper - lower > extent {
                (widest, extent) = (axis, upper - lower);
            }
        }
        if elements.len() <= LEAF {
            return;
        }
        let shape = self.shape;
        let sum = |element: &[u32]| -> f64 {
            element.iter().map(|row| shape.position(*row)[widest]).sum()
        };
        let middle = elements.len() / 2;
        elements.select_nth_unstable_by(middle, |a, b| sum(a).total_cmp(&sum(b)));
        let (left, right) = elements.split_at_mut(middle);
        self.build(2 * node + 1, left);
        self.build(2 * node + 2, right);
    }

    /// Returns the distance of the nearest element.
    pub(super) fn nearest(&self, position: &[f64]) -> f64 {
        self.nearest_beyond(position, f64::NEG_INFINITY)
    }

    /// Returns the distance of the nearest element, or of any element within `near_enough`.
    pub(super) fn nearest_beyond(&self, position: &[f64], near_enough: f64) -> f64 {
        if self.elements.is_empty() {
            return f64::INFINITY;
        }
        let floor = if near_enough > 0.0 {
            near_enough * near_enough
        } else {
            -1.0
        };
        let mut best = f64::INFINITY;
        self.search(0, &self.elements, position, floor, &mut best);
        best.sqrt()
    }

    fn search(
        &self,
        node: usize,
        elements: &[&[u32]],
        position: &[f64],
        floor: f64,
        best: &mut f64,
    ) {
        if elements.len() <= LEAF {
            for element in elements {
                *best = best.min(self.square_of(element, position));
            }
            return;
        }
        let (left, right) = elements.split_at(elements.len() / 2);
        let mut children = [(2 * node + 1, left), (2 * node + 2, right)]
            .map(|(child, elements)| (self.square_of_box(child, position), child, elements));
        if children[1].0 < children[0].0 {
            children.swap(0, 1);
        }
        for (square, child, elements) in children {
            if square < *best && *best > floor {
                self.search(child, elements, position, floor, best);
            }
        }
    }

    /// Returns the squared distance of a box.
    fn square_of_box(&self, node: usize, position: &[f64]) -> f64 {
        let axes = self.shape.axes;
        let (lower, upper) = self.boxes[node * 2 * axes..][..2 * axes].split_at(axes);
        position
            .iter()
            .zip(lower.iter().zip(upper))
            .map(|(number, (lower, upper))| {
                let off = (lower - number).max(number - upper).max(0.0);
                off * off
            })
            .sum()
    }

    /// Returns the squared distance of an element.
    fn square_of(&self, element: &[u32], position: &[f64]) -> f64 {
        let at = |corner: usize| self.shape.position(element[corner]);
        match element.len() {
            1 => square(at(0), position),
            2 => off(position, at(0), at(1)),
            _ => square_of_triangle([at(0), at(1), at(2)], position),
        }
    }
}

/// (to - from) · (other - from)
fn product(from: &[f64], to: &[f64], other: &[f64]) -> f64 {
    from.iter()
        .zip(to.iter().zip(other))
        .map(|(from, (to, other))| (to - from) * (other - from))
        .sum()
}

/// Inside the triangle the plane decides, outside its nearest edge.
fn square_of_triangle([a, b, c]: [&[f64]; 3], position: &[f64]) -> f64 {
    let (bb, bc, cc) = (square(a, b), product(a, b, c), square(a, c));
    let (pb, pc) = (product(a, b, position), product(a, c, position));
    let whole = bb * cc - bc * bc;
    let (of_b, of_c) = (cc * pb - bc * pc, bb * pc - bc * pb);
    if whole > 0.0 && of_b >= 0.0 && of_c >= 0.0 && of_b + of_c <= whole {
        let (of_b, of_c) = (of_b / whole, of_c / whole);
        return (0..position.len())
            .map(|axis| {
                let off = a[axis] + (b[axis] - a[axis]) * of_b + (c[axis] - a[axis]) * of_c
                    - position[axis];
                off * off
            })
            .sum();
    }
    off(position, a, b)
        .min(off(position, b, c))
        .min(off(position, c, a))
}
