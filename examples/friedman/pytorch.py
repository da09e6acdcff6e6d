"""The perceptron in PyTorch; ranks add up their gradients over gloo."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported after ranks have joined, its defaults would hold the group
from friedman.task import loop, problem


class Training:
    def __init__(self, options):
        self.world_size = options.world_size
        if self.world_size > 1:
            dist.init_process_group("gloo")
        arrays = problem.weights(options.width)
        self.weights = [torch.nn.Parameter(torch.from_numpy(array)) for array in arrays]
        self.optimizer = torch.optim.SGD(self.weights, lr=problem.RATE, momentum=problem.MOMENTUM)

    def loss(self, x, y):
        w1, b1, w2, b2 = self.weights
        output = torch.tanh(torch.from_numpy(x) @ w1 + b1) @ w2 + b2
        return torch.mean((output[:, 0] - torch.from_numpy(y)) ** 2)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        total = loss.detach().clone()
        for tensor in [total, *(weight.grad for weight in self.weights)] if self.world_size > 1 else ():
            dist.all_reduce(tensor)
            tensor /= self.world_size
        self.optimizer.step()
        return float(total)

    @torch.no_grad()
    def rmse(self, x, y):
        return float(torch.sqrt(self.loss(x, y)))

    def close(self):
        if self.world_size > 1:
            dist.destroy_process_group()


if __name__ == "__main__":
    loop.main("pytorch", torch.__version__, Training)
