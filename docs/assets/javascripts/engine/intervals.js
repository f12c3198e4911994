// Sums of times.

/** The sum to its last digit but one, whatever the order of magnitude of what is added. */
export function total(values) {
  let [sum, lost] = [0, 0];
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return sum + lost;
}
