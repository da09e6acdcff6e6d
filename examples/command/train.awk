# Fits a line to noisy points by stochastic gradient descent and prints one line a step.
# A program that knows nothing of Trainmark: its output is all there is to measure.
BEGIN {
    srand(1)
    slope = offset = 0
    report(0, 1)
    for (step = 1; step <= steps; step++) {
        loss = slope_gradient = offset_gradient = 0
        for (i = 0; i < batch; i++) {
            x = 2 * rand() - 1
            error = slope * x + offset - (3 * x + 1 + rand() - 0.5)
            loss += error * error / batch
            slope_gradient += 2 * error * x / batch
            offset_gradient += 2 * error / batch
        }
        slope -= 0.1 * slope_gradient
        offset -= 0.1 * offset_gradient
        report(step, loss)
    }
}

function report(step, loss) {
    printf "step %d loss %.6f\n", step, loss
    fflush()  # a line held back is a step that seems to end late
}
