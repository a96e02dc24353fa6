//! Difference of two texts by lines.

/// Unchanged lines that stay before and after a change.
const AROUND: usize = 3;

/// Cells of the table of common lines. Beyond them all lines between the common begin and end count as changed.
const MOST_CELLS: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineChange {
    Same,
    Removed,
    Added,
}

/// Lines of the difference: `-` before a line that was removed, `+` before one that was added, a space before others. `...`
/// replaces longer runs of unchanged lines.
pub(crate) fn line_diff(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let changes = changes(&old, &new);
    let is_near = |at: usize| {
        let range = at.saturating_sub(AROUND)..(at + AROUND + 1).min(changes.len());
        changes[range].iter().any(|(change, _)| *change != LineChange::Same)
    };
    let mut lines = Vec::new();
    let mut is_omitting = false;
    for (at, (change, text)) in changes.iter().enumerate() {
        let sign = match change {
            LineChange::Removed => "-",
            LineChange::Added => "+",
            LineChange::Same if is_near(at) => " ",
            LineChange::Same => {
                if !std::mem::replace(&mut is_omitting, true) {
                    lines.push("...".to_owned());
                }
                continue;
            }
        };
        is_omitting = false;
        lines.push(format!("{sign} {text}"));
    }
    lines
}

fn changes<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineChange, &'a str)> {
    let common = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let begin = common(&mut old.iter().zip(new));
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let end = common(&mut old_rest.iter().rev().zip(new_rest.iter().rev()));
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let same = |lines: &[&'a str]| lines.iter().map(|line| (LineChange::Same, *line)).collect::<Vec<_>>();
    let mut all = same(&old[..begin]);
    all.extend(middle(old_mid, new_mid));
    all.extend(same(&old_rest[old_mid.len()..]));
    all
}

fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineChange, &'a str)> {
    let width = new.len() + 1;
    let is_small = (old.len() + 1).saturating_mul(width) <= MOST_CELLS;
    // Length of the longest common part of what follows each pair of positions.
    let mut common = vec![0_u32; if is_small { (old.len() + 1) * width } else { 0 }];
    if is_small {
        for a in (0..old.len()).rev() {
            for b in (0..new.len()).rev() {
                common[a * width + b] = match old[a] == new[b] {
                    true => common[(a + 1) * width + b + 1] + 1,
                    false => common[(a + 1) * width + b].max(common[a * width + b + 1]),
                };
            }
        }
    }
    let (mut a, mut b, mut all) = (0, 0, Vec::with_capacity(old.len() + new.len()));
    while is_small && a < old.len() && b < new.len() {
        if old[a] == new[b] {
            all.push((LineChange::Same, old[a]));
            (a, b) = (a + 1, b + 1);
        } else if common[(a + 1) * width + b] >= common[a * width + b + 1] {
            all.push((LineChange::Removed, old[a]));
            a += 1;
        } else {
            all.push((LineChange::Added, new[b]));
            b += 1;
        }
    }
    all.extend(old[a..].iter().map(|line| (LineChange::Removed, *line)));
    all.extend(new[b..].iter().map(|line| (LineChange::Added, *line)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_have_signs_and_neighbours() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\ne\nf\nG\nh\ni\n";
        assert_eq!(line_diff(before, after), ["...", "  d", "  e", "  f", "- g", "+ G", "  h", "+ i"]);
        assert_eq!(line_diff("", "x\n"), ["+ x"]);
        assert_eq!(line_diff("x = 1\ny = 2", "y = 2"), ["- x = 1", "  y = 2"]);
        assert!(line_diff("", "").is_empty());
    }

    #[test]
    fn long_texts_are_replaced_as_a_whole() {
        let text = |sign: &str| (0..3000).map(|at| format!("{sign}{at}\n")).collect::<String>();
        let lines = line_diff(&text("a"), &text("b"));
        assert_eq!((lines.len(), lines[0].as_str(), lines[5999].as_str()), (6000, "- a0", "+ b2999"));
    }
}
