//! What repetitions come to.

/// Repetitions of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The one in the middle, or the mean of the two there.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Summary {
    /// `None` without figures.
    pub fn of(raw: &[f64]) -> Option<Summary> {
        let mut sorted = raw.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Summary { median, min, max })
    }

    /// From the least to the most, as a part of the median; 0 where that is 0.
    pub fn spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.max - self.min) / self.median }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0, 1.0, 100.0]), Some(Summary { median: 3.0, min: 1.0, max: 100.0 }));
        let even = Summary::of(&[4.0, 1.0, 2.0, 8.0]).unwrap();
        assert_eq!((even.median, even.spread()), (3.0, 7.0 / 3.0));
        assert_eq!(Summary::of(&[0.0]).unwrap().spread(), 0.0);
    }
}
