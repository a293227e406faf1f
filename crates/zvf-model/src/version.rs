//! Format versions.

use core::fmt;

/// A version `X.Y` or `X.Y.Z`; a missing Z counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// X.
    pub major: u32,
    /// Y.
    pub minor: u32,
    /// Z.
    pub patch: u32,
}

impl Version {
    /// Creates a version from three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Reads the attribute `zv_version`.
    ///
    /// ```
    /// use zvf_model::version::Version;
    ///
    /// assert_eq!(Version::parse("0.6"), Ok(Version::new(0, 6, 0)));
    /// assert!(Version::parse("0.9.0rc1").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`VersionError`] if it is not two or three numbers separated by dots.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let mut numbers = text.split('.').map(number);
        let mut next = || numbers.next().unwrap_or(Some(0)).ok_or(VersionError);
        let version = Self::new(next()?, next()?, next()?);
        if numbers.next().is_some() || !text.contains('.') {
            return Err(VersionError);
        }
        Ok(version)
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not two or three numbers with dots between them")]
pub struct VersionError;
