//! The objects of vertices.

/// The object of a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// No object.
    #[default]
    None,
    /// The object with this id.
    Object(i64),
    /// Several objects, which share the vertex.
    Several,
}

impl Owner {
    /// The number of no object where ids are stored as integers: in arrays, tables and files.
    pub const NONE: i64 = -1;
    /// The number of several objects where ids are stored as integers.
    pub const SEVERAL: i64 = -2;

    /// Returns the owner that an integer stands for.
    pub const fn from_number(number: i64) -> Self {
        match number {
            Self::NONE => Self::None,
            Self::SEVERAL => Self::Several,
            id => Self::Object(id),
        }
    }

    /// Returns the integer that stands for the owner.
    pub const fn number(self) -> i64 {
        match self {
            Self::None => Self::NONE,
            Self::Object(id) => id,
            Self::Several => Self::SEVERAL,
        }
    }

    /// Returns the id if there is exactly one object.
    pub const fn object(self) -> Option<i64> {
        match self {
            Self::Object(id) => Some(id),
            Self::None | Self::Several => None,
        }
    }

    /// Returns the owner of a vertex that has both owners.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, one) | (one, Self::None) => one,
            (one, same) if one == same => one,
            _ => Self::Several,
        }
    }
}

/// The object of each vertex, in memory as tables and files store it: the id, -1 for no object and -2
/// for several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectIds(Vec<i64>);

impl ObjectIds {
    /// Takes ids, -1 for no object and -2 for several.
    pub const fn from_numbers(numbers: Vec<i64>) -> Self {
        Self(numbers)
    }

    /// Returns ids, -1 for no object and -2 for several.
    pub fn numbers(&self) -> &[i64] {
        &self.0
    }

    /// Returns ids, -1 for no object and -2 for several, without a copy.
    pub fn into_numbers(self) -> Vec<i64> {
        self.0
    }

    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the owner of a vertex.
    pub fn get(&self, vertex: usize) -> Option<Owner> {
        self.0.get(vertex).copied().map(Owner::from_number)
    }

    /// Returns the owner of each vertex.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Owner> + '_ {
        self.0.iter().copied().map(Owner::from_number)
    }

    /// Returns the owners of runs of vertices with the same owner, and the lengths of the runs.
    pub fn runs(&self) -> impl Iterator<Item = (Owner, usize)> + '_ {
        let runs = self.0.chunk_by(|a, b| a == b);
        runs.filter_map(|same| Some((Owner::from_number(*same.first()?), same.len())))
    }

    /// Keeps these vertices, in this order. Those that do not exist are left out.
    #[must_use]
    pub fn take(&self, vertices: &[usize]) -> Self {
        let vertices = vertices.iter();
        vertices.filter_map(|vertex| self.get(*vertex)).collect()
    }
}

impl FromIterator<Owner> for ObjectIds {
    fn from_iter<T: IntoIterator<Item = Owner>>(owners: T) -> Self {
        Self(owners.into_iter().map(Owner::number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_the_numbers_of_files() {
        let numbers = vec![7, -1, -1, -2, 0, i64::MIN];
        let ids = ObjectIds::from_numbers(numbers.clone());
        let owners: Vec<Owner> = ids.iter().collect();
        let expected = [
            Owner::Object(7),
            Owner::None,
            Owner::None,
            Owner::Several,
            Owner::Object(0),
            Owner::Object(i64::MIN),
        ];
        assert_eq!(owners, expected);
        assert_eq!(owners.into_iter().collect::<ObjectIds>(), ids);
        assert_eq!(ids.runs().nth(1), Some((Owner::None, 2)));
        assert_eq!(ids.take(&[9, 3, 0]).numbers(), [-2, 7]);
        assert_eq!(ids.get(6), None);
        assert_eq!(ids.into_numbers(), numbers);
    }

    #[test]
    fn different_owners_are_several() {
        let [one, other] = [Owner::Object(1), Owner::Object(2)];
        assert_eq!(one.and(Owner::None), one);
        assert_eq!(Owner::None.and(one), one);
        assert_eq!(one.and(one), one);
        assert_eq!(one.and(other), Owner::Several);
        assert_eq!(Owner::Several.and(one), Owner::Several);
    }
}
