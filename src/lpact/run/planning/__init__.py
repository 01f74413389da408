"""What a run will take, worked out before it computes anything: rows, time, memory and disk."""
