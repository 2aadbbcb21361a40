CREATE TABLE orders (id INT, amount DECIMAL(10, 2)) WITH ('connector' = 'datagen', 'number-of-rows' = '3');

SELECT id, amonut * 2 FROM orders;
