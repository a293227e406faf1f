//! Exact signs of 2 × 2 and 3 × 3 determinants.
//!
//! Entries are differences of two f64. The rounded determinant decides if its distance from zero
//! exceeds its error bound. Otherwise the exact determinant is computed as a sum of
//! non-overlapping f64, after Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast
//! Robust Geometric Predicates" (1997).

use std::cmp::Ordering;

/// Unit roundoff: half the distance from 1 to the next f64.
const UNIT: f64 = f64::EPSILON / 2.0;

/// The exact difference of two f64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Diff {
    minuend: f64,
    subtrahend: f64,
}

impl Diff {
    /// Creates the difference `minuend - subtrahend`.
    pub(super) fn new(minuend: f64, subtrahend: f64) -> Self {
        Self {
            minuend,
            subtrahend,
        }
    }

    pub(super) fn rounded(self) -> f64 {
        self.minuend - self.subtrahend
    }

    /// Returns two f64 whose exact sum is the difference.
    fn parts(self) -> [f64; 2] {
        two_sum(self.minuend, -self.subtrahend)
    }
}

/// Returns the sign of `p * q - r * s`.
pub(super) fn sign_of_2(p: Diff, q: Diff, r: Diff, s: Diff) -> Ordering {
    let left = p.rounded() * q.rounded();
    let right = r.rounded() * s.rounded();
    // At most 4 rounding errors of UNIT affect each product; the bound doubles them.
    let error = 8.0 * UNIT * (left.abs() + right.abs()) + f64::MIN_POSITIVE;
    decided(left - right, error).unwrap_or_else(|| {
        let mut sum = Sum::<16>::new();
        sum.add_product_of_2(p, q, 1.0);
        sum.add_product_of_2(r, s, -1.0);
        sum.sign()
    })
}

/// Returns the sign of the determinant of three rows.
pub(super) fn sign_of_3(rows: [[Diff; 3]; 3]) -> Ordering {
    let [[ax, ay, az], [bx, by, bz], [cx, cy, cz]] = rows;
    let products = [
        (ax, by, cz, 1.0),
        (ay, bz, cx, 1.0),
        (az, bx, cy, 1.0),
        (az, by, cx, -1.0),
        (ay, bx, cz, -1.0),
        (ax, bz, cy, -1.0),
    ];
    let (mut value, mut size) = (0.0, 0.0);
    for (x, y, z, sign) in products {
        let product: f64 = x.rounded() * y.rounded() * z.rounded();
        value += sign * product;
        size += product.abs();
    }
    // At most 11 rounding errors of UNIT affect each product; the bound doubles them.
    decided(value, 22.0 * UNIT * size + f64::MIN_POSITIVE).unwrap_or_else(|| {
        let mut sum = Sum::<192>::new();
        for (x, y, z, sign) in products {
            sum.add_product_of_3(x, y, z, sign);
        }
        sum.sign()
    })
}

/// Returns the sign of a quantity known as `value` ± `error`, or `None` if that is ambiguous.
fn decided(value: f64, error: f64) -> Option<Ordering> {
    if value > error {
        Some(Ordering::Greater)
    } else if -value > error {
        Some(Ordering::Less)
    } else {
        None
    }
}

/// An exact sum of up to `N` f64: non-overlapping terms of increasing magnitude.
struct Sum<const N: usize> {
    terms: [f64; N],
    len: usize,
}

impl<const N: usize> Sum<N> {
    fn new() -> Self {
        let terms = [0.0; N];
        Self { terms, len: 0 }
    }

    /// Adds at most 8 terms.
    fn add_product_of_2(&mut self, x: Diff, y: Diff, sign: f64) {
        for x in x.parts() {
            for y in y.parts() {
                self.add_both(two_product(sign * x, y));
            }
        }
    }

    /// Adds at most 32 terms.
    fn add_product_of_3(&mut self, x: Diff, y: Diff, z: Diff, sign: f64) {
        for x in x.parts() {
            for y in y.parts() {
                let [product, rest] = two_product(sign * x, y);
                for z in z.parts() {
                    self.add_both(two_product(product, z));
                    self.add_both(two_product(rest, z));
                }
            }
        }
    }

    fn add_both(&mut self, terms: [f64; 2]) {
        for term in terms {
            // Most terms are zero, because coordinates seldom use all bits of an f64.
            if term != 0.0 {
                self.add(term);
            }
        }
    }

    fn add(&mut self, term: f64) {
        let mut carry = term;
        for slot in self.terms.iter_mut().take(self.len) {
            [carry, *slot] = two_sum(carry, *slot);
        }
        if let Some(slot) = self.terms.get_mut(self.len) {
            *slot = carry;
            self.len += 1;
        }
    }

    /// Returns the sign of the largest term, which exceeds the sum of all others. An overflowed
    /// sum has no sign and counts as zero.
    fn sign(&self) -> Ordering {
        let mut terms = self.terms.iter().take(self.len).rev();
        let largest = terms.find(|term| **term != 0.0);
        let sign = largest.and_then(|term| term.partial_cmp(&0.0));
        sign.unwrap_or(Ordering::Equal)
    }
}

/// Returns the rounded sum and its rounding error.
fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let sum = a + b;
    let b_in_sum = sum - a;
    let a_in_sum = sum - b_in_sum;
    [sum, (a - a_in_sum) + (b - b_in_sum)]
}

/// Returns the rounded product and its rounding error.
fn two_product(a: f64, b: f64) -> [f64; 2] {
    let product = a * b;
    [product, a.mul_add(b, -product)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(minuend: f64, subtrahend: f64) -> Diff {
        Diff::new(minuend, subtrahend)
    }

    #[test]
    fn two_by_two_sign_is_exact_where_rounding_is_not() {
        let tiny = f64::EPSILON * f64::EPSILON;
        let one = d(1.0, 0.0);
        assert_eq!(sign_of_2(one, one, one, one), Ordering::Equal);
        // (1 + tiny) * 1 - 1 * 1, where 1 + tiny is not representable.
        assert_eq!(sign_of_2(d(1.0, -tiny), one, one, one), Ordering::Greater);
        assert_eq!(sign_of_2(one, one, d(1.0, -tiny), one), Ordering::Less);
    }

    #[test]
    fn three_by_three_sign_is_exact_where_rounding_is_not() {
        let tiny = f64::EPSILON * f64::EPSILON;
        let rows = |corner: Diff| {
            let v = |value: f64| d(value, 0.0);
            [
                [v(1.0), v(2.0), v(3.0)],
                [v(4.0), v(5.0), v(6.0)],
                [v(7.0), v(8.0), corner],
            ]
        };
        assert_eq!(sign_of_3(rows(d(9.0, 0.0))), Ordering::Equal);
        // The cofactor of the corner is 5 - 8.
        assert_eq!(sign_of_3(rows(d(9.0, -tiny))), Ordering::Less);
        assert_eq!(sign_of_3(rows(d(9.0, tiny))), Ordering::Greater);
    }

    #[test]
    fn overflow_compares_equal() {
        let huge = d(f64::MAX, -f64::MAX);
        assert_eq!(sign_of_2(huge, huge, huge, huge), Ordering::Equal);
    }
}
