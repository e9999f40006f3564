//! Plots as SVG: medians joined by lines, with bars from the least to the most. Axes are logarithmic, because sizes and rates span
//! decades; ticks are chosen here, so that each is a number that people know.

use crate::suite::case::CaseResult;
use crate::suite::cases::bytes;
use crate::suite::statistics::Summary;
use plotters::coord::combinators::BindKeyPoints;
use plotters::prelude::*;

/// What the x axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Bytes, by powers of two.
    Bytes,
    /// Things.
    Things,
    /// How many messages there are to one that took longer: percentiles, each nine as wide as the next.
    Percentiles,
}

/// Percentiles that are drawn: by one message in so many that takes longer, the figure, and what people call it. The slowest
/// message is drawn as one in 10 000.
const PERCENTILES: [(f64, &str, &str); 5] = [
    (2.0, "p50_us", "50"),
    (10.0, "p90_us", "90"),
    (100.0, "p99_us", "99"),
    (1000.0, "p999_us", "99.9"),
    (10_000.0, "max_us", "most"),
];

/// A plot that cases are drawn in.
#[derive(Debug)]
pub struct Plot {
    /// What cases call it.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    x: &'static str,
    count: Count,
    /// What it draws; of percentiles all.
    metric: &'static str,
    y: &'static str,
}

const SIZE: &str = "message size";
const GBPS: &str = "payload [Gb/s]";
const RATE: &str = "messages [million/s]";

const fn plot(
    name: &'static str,
    title: &'static str,
    x: &'static str,
    metric: &'static str,
    y: &'static str,
) -> Plot {
    Plot { name, title, x, count: Count::Bytes, metric, y }
}

const fn percentiles(name: &'static str, title: &'static str) -> Plot {
    Plot { name, title, x: "percentile", count: Count::Percentiles, metric: "p50_us", y: "latency [µs]" }
}

/// Every plot, in the order of the report.
pub static PLOTS: &[Plot] = &[
    plot("rc", "RC over net_ring, one queue pair, against copy and CRC", SIZE, "gbps", GBPS),
    plot("rc-rate", "RC over net_ring: messages", SIZE, "mmps", RATE),
    plot("unreliable", "UC and UD over net_ring, one queue pair", SIZE, "gbps", GBPS),
    plot("mtu", "64 KiB over net_ring by path MTU", "path MTU", "gbps", GBPS),
    Plot {
        name: "qps",
        title: "64-byte messages over net_ring by queue pairs",
        x: "queue pairs",
        count: Count::Things,
        metric: "mmps",
        y: RATE,
    },
    percentiles("latency", "Latency of 8 bytes over net_ring by percentile, beside the machine's noise"),
    percentiles("latency-wires", "Latency over each wire by percentile"),
    plot("wires", "RC WRITE over each wire, beside peers", SIZE, "gbps", GBPS),
    plot("wires-rate", "RC WRITE over each wire, beside peers: messages", SIZE, "mmps", RATE),
    plot("limits", "What one core can: copy, CRC-32, and both", "payload at a time", "gbps", GBPS),
];

/// A line of a plot.
pub struct Line {
    /// Its name.
    pub name: String,
    points: Vec<(f64, Summary)>,
}

/// The lines of a plot: those cases that were measured.
pub fn lines(plot: &Plot, results: &[CaseResult]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for result in results {
        for point in result.case.points.iter().filter(|point| point.plot == plot.name) {
            let points = points(plot, result, point.x);
            match lines.iter_mut().find(|line| line.name == point.series) {
                Some(line) => line.points.extend(points),
                None if points.is_empty() => {}
                None => lines.push(Line { name: point.series.clone(), points }),
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

/// What a case adds to its line: a point, or one for each percentile.
fn points(plot: &Plot, result: &CaseResult, x: f64) -> Vec<(f64, Summary)> {
    let summary = |metric| result.summary(metric).filter(|summary| summary.min > 0.0);
    if plot.count == Count::Percentiles {
        return PERCENTILES.iter().filter_map(|(x, metric, _)| Some((*x, summary(metric)?))).collect();
    }
    summary(plot.metric).map(|summary| (x, summary)).into_iter().collect()
}

/// Colours of lines, far apart for most eyes.
const COLOURS: [(u8, u8, u8); 12] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (90, 90, 90),
    (120, 40, 140),
    (150, 110, 50),
    (220, 50, 80),
    (60, 180, 60),
    (20, 20, 20),
];

/// The colour of a line, by its number.
pub fn colour(line: usize) -> (u8, u8, u8) {
    COLOURS[line % COLOURS.len()]
}

/// Pixels of a plot.
const EXTENT: (u32, u32) = (760, 420);

/// The picture; `None` without lines.
pub fn svg(plot: &Plot, lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    points().next()?;
    let (x_ticks, y_ticks) = (
        x_ticks(plot.count, points().map(|(x, _)| *x)),
        decade_ticks(points().flat_map(|(_, y)| [y.min, y.max])),
    );
    let x_range = around(&x_ticks, ends(points().map(|(x, _)| *x)))?;
    let y_range = around(&y_ticks, ends(points().flat_map(|(_, y)| [y.min, y.max])))?;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, EXTENT).into_drawing_area();
        draw(plot, lines, &root, (x_range, x_ticks), (y_range, y_ticks)).ok()?;
        root.present().ok()?;
    }
    Some(text)
}

type Axis = (std::ops::Range<f64>, Vec<f64>);
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(
    plot: &Plot,
    lines: &[Line],
    root: &Area<'_>,
    (x_range, x_ticks): Axis,
    (y_range, y_ticks): Axis,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let labels = (x_ticks.len(), y_ticks.len());
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(52)
        .y_label_area_size(74)
        .build_cartesian_2d(
            x_range.log_scale().with_key_points(x_ticks),
            y_range.log_scale().with_key_points(y_ticks),
        )?;
    let x_label = |number: &f64| match plot.count {
        Count::Bytes => bytes(number.round() as u64),
        Count::Things => format!("{number:.0}"),
        Count::Percentiles => {
            let known = PERCENTILES.iter().find(|(x, ..)| (x - number).abs() < x * 0.01);
            known.map_or_else(String::new, |(_, _, said)| (*said).to_owned())
        }
    };
    let y_label = |number: &f64| tick_label(*number);
    chart
        .configure_mesh()
        .x_desc(plot.x)
        .y_desc(plot.y)
        .x_labels(labels.0)
        .y_labels(labels.1)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .bold_line_style(RGBColor(222, 222, 222))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    for (number, line) in lines.iter().enumerate() {
        let (red, green, blue) = colour(number);
        let colour = RGBColor(red, green, blue);
        let medians: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| (*x, y.median)).collect();
        chart.draw_series(LineSeries::new(medians.iter().copied(), colour.stroke_width(2)))?;
        chart.draw_series(medians.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
        chart.draw_series(
            line.points
                .iter()
                .map(|(x, y)| PathElement::new(vec![(*x, y.min), (*x, y.max)], colour.stroke_width(1))),
        )?;
    }
    Ok(())
}

/// Powers of two from the least to the most, or of ten; not more than can be read.
fn x_ticks(count: Count, values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    match count {
        Count::Things => decade_ticks(values),
        Count::Percentiles => PERCENTILES.iter().map(|(x, ..)| *x).collect(),
        Count::Bytes => {
            let (least, most) = ends(values);
            let (first, last) = (least.log2().floor() as i32, most.log2().ceil() as i32);
            let step = ((last - first) as usize / 12 + 1).max(1);
            (first..=last.max(first + 1)).step_by(step).map(|shift| 2f64.powi(shift)).collect()
        }
    }
}

/// 1, 2 and 5 of each decade, or where there are many decades 1 only.
fn decade_ticks(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let (least, most) = ends(values);
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let steps: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> =
        (first..=last).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade))).collect();
    // From the last one below to the first one above.
    let from = all.iter().rposition(|tick| *tick <= least * 1.000_001).unwrap_or(0);
    let to = all.iter().position(|tick| *tick >= most * 0.999_999).unwrap_or(all.len() - 1);
    all[from..=to.max((from + 1).min(all.len() - 1))].to_vec()
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| (least.min(value), most.max(value)))
}

/// The axis: all ticks and all values, with a little room.
fn around(ticks: &[f64], (least, most): (f64, f64)) -> Option<std::ops::Range<f64>> {
    let (first, last) = (ticks.first()?.min(least), ticks.last()?.max(most));
    let room = (last / first).powf(0.03);
    (first > 0.0 && last.is_finite() && first < last).then_some(first / room..last * room)
}

fn tick_label(value: f64) -> String {
    if value >= 0.999 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_numbers_that_people_know() {
        let ticks = |values: &[f64]| decade_ticks(values.iter().copied());
        assert_eq!(ticks(&[3.0, 40.0]), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(ticks(&[1.0, 10_000.0]), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert!(ticks(&[10.0, 10.0]).len() >= 2);
        let sizes = x_ticks(Count::Bytes, [64.0, 4096.0].into_iter());
        assert_eq!(sizes, [64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0]);
        assert!(x_ticks(Count::Bytes, [1.0, 8_388_608.0].into_iter()).len() <= 13);
        assert_eq!([tick_label(0.05), tick_label(0.5), tick_label(20.0)], ["0.05", "0.5", "20"]);
    }

    #[test]
    fn a_case_is_a_line_of_its_percentiles() {
        let cases = crate::suite::cases::all(std::time::Duration::from_secs(1));
        let case =
            cases.into_iter().find(|case| case.points.iter().any(|point| point.plot == "latency")).unwrap();
        let series = case.points[0].series.clone();
        let sample = crate::suite::case::Sample([("p50_us", 1.0), ("p999_us", 9.0), ("gbps", 3.0)].into());
        let result = CaseResult {
            case,
            samples: vec![sample],
            apart: vec![],
            verdict: crate::suite::case::Verdict::Measured,
            trouble: None,
        };
        let plot = PLOTS.iter().find(|plot| plot.name == "latency").unwrap();
        let drawn = lines(plot, &[result]);
        let medians: Vec<_> = drawn[0].points.iter().map(|(x, y)| (*x, y.median)).collect();
        assert_eq!((drawn.len(), &drawn[0].name, medians), (1, &series, vec![(2.0, 1.0), (1000.0, 9.0)]));
    }

    #[test]
    fn a_picture_has_labels_with_units_and_its_lines() {
        let summary = |median| Summary { median, min: median * 0.9, max: median * 1.1 };
        let line = Line { name: "x".into(), points: vec![(64.0, summary(2.0)), (65536.0, summary(60.0))] };
        let text = svg(&PLOTS[0], &[line]).unwrap();
        for words in ["message size", "payload [Gb/s]", "4 KiB", "polyline", "circle"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(svg(&PLOTS[0], &[]), None);
        let plot = PLOTS.iter().find(|plot| plot.count == Count::Percentiles).unwrap();
        let points = PERCENTILES.iter().map(|(x, ..)| (*x, summary(*x))).collect();
        let text = svg(plot, &[Line { name: "x".into(), points }]).unwrap();
        for words in ["latency [µs]", "percentile", "99.9", "most", "circle"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
